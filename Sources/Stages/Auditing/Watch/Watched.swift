import PurchasesContracts
import PurchasesCore

/// A row of `audit_watch`: what the log has said of one transaction so far.
///
/// Several partitions, in several processes, tell of one transaction, in any order. Each merges its own part; only the
/// watchdog looks at the whole, at the row's `look_at`.
struct Watched: Sendable, Hashable {
  var purchasedAt: Instant?
  var verifiedAt: Instant?
  var rejectedAt: Instant?
  var failedAt: Instant?
  var grantedAt: Instant?
  var finishedAt: Instant?
  var reported: Reported = []
  var lookAt: Instant?

  struct Reported: OptionSet, Sendable, Hashable {
    let rawValue: Int64
    static let neverGranted = Reported(rawValue: 1)
    static let neverFinished = Reported(rawValue: 2)
    static let finishedUngranted = Reported(rawValue: 4)
  }

  init() {}

  /// What a record adds to the row.
  init(_ signal: WatchSignal, at instant: Instant, _ limits: AuditLimits) {
    switch signal {
    case .purchased:
      purchasedAt = instant
      lookAt = instant.advanced(byMilliseconds: limits.grantWithinMilliseconds)
    case .verified:
      verifiedAt = instant
      // A genuine proof may come after a rejected one has closed the row.
      lookAt = instant.advanced(byMilliseconds: limits.grantWithinMilliseconds)
    case .rejected: rejectedAt = instant
    case .failed: failedAt = instant
    case .granted:
      grantedAt = instant
      lookAt = instant.advanced(byMilliseconds: limits.grantWithinMilliseconds)
    case .finished:
      finishedAt = instant
      lookAt = instant.advanced(byMilliseconds: limits.permitWithinMilliseconds)
    }
  }

  /// What is wrong with the row at this instant and not reported yet, and the row as it is to be kept: closed, or to be
  /// looked at again.
  func judged(at instant: Instant, _ limits: AuditLimits) -> (found: [Finding], next: Watched) {
    var next = self
    next.lookAt = nil
    var found: [Finding] = []
    func expect(_ mark: Reported, _ kind: AuditAnomaly.Kind, since: Instant, within limit: Int64) {
      guard !next.reported.contains(mark) else { return }
      let due = since.advanced(byMilliseconds: limit)
      if due <= instant {
        next.reported.insert(mark)
        found.append(Finding(kind: kind, since: since))
      } else {
        next.lookAt = min(next.lookAt ?? due, due)
      }
    }
    if let grantedAt {
      if finishedAt == nil, let purchasedAt {
        expect(
          .neverFinished, .grantedNeverFinished, since: max(grantedAt, purchasedAt),
          within: limits.finishWithinMilliseconds)
      }
      return (found, next)
    }
    // A payment that failed may be finished without a permit.
    if let finishedAt, failedAt == nil {
      expect(.finishedUngranted, .finishedWithoutGrant, since: finishedAt, within: limits.permitWithinMilliseconds)
    }
    // A rejected proof grants nothing; one that was found genuine must, whatever forgery named its transaction too.
    if let purchasedAt, rejectedAt == nil || verifiedAt != nil {
      expect(
        .neverGranted, .purchasedNeverGranted, since: purchasedAt, within: limits.grantWithinMilliseconds)
    }
    return (found, next)
  }

  struct Finding: Sendable, Hashable {
    let kind: AuditAnomaly.Kind
    let since: Instant
  }
}

extension Watched {
  static func key(_ subject: TransactionSubject) -> RowKey {
    RowKey(.auditWatch, [.text(subject.environment.rawValue), .text(subject.transaction.text)])
  }

  init(_ row: Row) {
    func instant(_ column: String) -> Instant? { row[column].integer.map { Instant(milliseconds: $0) } }
    purchasedAt = instant("purchased_at")
    verifiedAt = instant("verified_at")
    rejectedAt = instant("rejected_at")
    failedAt = instant("failed_at")
    grantedAt = instant("granted_at")
    finishedAt = instant("finished_at")
    reported = Reported(rawValue: row["reported"].integer ?? 0)
    lookAt = instant("look_at")
  }

  /// In the order of the table's columns.
  var values: [Value] {
    [
      Value(purchasedAt), Value(verifiedAt), Value(rejectedAt), Value(failedAt), Value(grantedAt), Value(finishedAt),
      reported.isEmpty ? .null : .integer(reported.rawValue), Value(lookAt),
    ]
  }
}
