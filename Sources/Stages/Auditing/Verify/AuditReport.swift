import PurchasesContracts

/// What a verification found.
public struct AuditReport: Sendable, Hashable {
  public struct Tree: Sendable, Hashable {
    public var partition: TopicPartition
    public var records: Int64
    /// Leaves that the newest checkpoint signs for.
    public var signed: Int64
    public var checkpoints: Int
    /// Recomputed from the records; in hex.
    public var root: String
  }

  /// Name, leaves and root of a tree.
  public struct Head: Sendable, Hashable {
    public var origin: String
    public var size: Int64
    /// In hex.
    public var root: String
  }

  public var trees: [Tree] = []
  /// The log over all partitions (the one that was begun last), as its newest checkpoint has it; nil where there is none.
  public var summary: Head?
  public var anomalies: [AuditAnomaly.Kind: Int] = [:]
  /// Records whose stage has not come to them yet.
  public var notWorkedOff: Int64 = 0
  /// Whether every record's outputs were looked for.
  public var checkedCompleteness = false
  /// The first ones.
  public var findings: [AuditFinding] = []
  /// All of them.
  public var findingCount = 0

  public init() {}

  public var holds: Bool { findingCount == 0 }
  public var records: Int64 { trees.reduce(0) { $0 + $1.records } }
  public var signed: Int64 { trees.reduce(0) { $0 + $1.signed } }
  public var checkpoints: Int { trees.reduce(0) { $0 + $1.checkpoints } }

  /// More than a person reads; the count tells of the rest.
  static let maximumFindings = 100

  mutating func add(_ kind: AuditFinding.Kind, _ place: String, _ explanation: String) {
    findingCount += 1
    if findings.count < Self.maximumFindings {
      findings.append(AuditFinding(kind: kind, place: place, explanation: explanation))
    }
  }
}

/// Something that does not hold. Names the place, never the content.
public struct AuditFinding: Sendable, Hashable, CustomStringConvertible {
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// Records were changed, dropped, swapped or added since they were signed for.
    case rootDiffers = "root-differs"
    /// Fewer records than a checkpoint signs for.
    case truncated
    /// The beginning of a partition is gone: nothing of it can be computed again.
    case beginningGone = "beginning-gone"
    /// Offsets that don't rise.
    case disorder
    /// The log's own data is broken: the rest of the partition can't be read.
    case unreadable
    /// Records behind the newest checkpoint, where all must be signed for.
    case unsigned
    /// A record of the topic `audit` that can't be read or contradicts itself.
    case unreadableCheckpoint = "unreadable-checkpoint"
    /// A note that the key did not sign.
    case badSignature = "bad-signature"
    /// The log over all partitions has a gap or two pasts.
    case summaryBroken = "summary-broken"
    /// The store's audit tables say something else than the log.
    case storeDiffers = "store-differs"
    /// A record that was worked off and has no output.
    case outputMissing = "output-missing"
    /// Some outputs of a record are there and some are not.
    case outputsIncomplete = "outputs-incomplete"
    /// An output of a record that is not there.
    case outputStray = "output-stray"
    /// An exported file that is not as it was written.
    case fileDamaged = "file-damaged"
  }

  public let kind: Kind
  /// TOPIC/PARTITION/OFFSET, or as much of it as is known, or a file.
  public let place: String
  public let explanation: String

  public var description: String { "\(kind.rawValue) at \(place): \(explanation)" }
}
