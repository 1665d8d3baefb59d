import PurchasesContracts

/// Why a stage stopped for good. What can heal by itself is retried and never ends here.
public enum RunnerFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// Another process took this instance's name over.
  case fenced(String)
  /// What the log holds, the group's offsets and the store disagree in a way that going on would make worse; the text says
  /// what to do.
  case inconsistent(String)
  /// Records that were to be read next are gone.
  case lost(String)
  /// An event of a newer version than this program knows.
  case newerEvent(String)
  /// The log or the store refuses what the stage must do (settings, permissions, sizes, schema).
  case refused(String)

  public var description: String {
    switch self {
    case .fenced(let reason): "fenced: \(reason)"
    case .inconsistent(let reason): "offsets, log and store disagree: \(reason)"
    case .lost(let reason): "records lost: \(reason)"
    case .newerEvent(let reason): "upgrade this program first: \(reason)"
    case .refused(let reason): "refused: \(reason)"
    }
  }
}

extension LogFailure.Kind {
  /// The batch in hand is given up, and recovery finds out what became of it.
  var dropsBatch: Bool { self == .stale || self == .aborted || self == .indefinite }
}
