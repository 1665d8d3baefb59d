import Dispatch
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import Synchronization

/// What may be waited for.
protocol Awaited {
  /// A final answer doesn't change any more.
  var isPending: Bool { get }
}

extension AnswerRow: Awaited {
  /// Until there is a final one there is none.
  var isPending: Bool { false }
}

extension PermitRow: Awaited {
  var isPending: Bool { permit.status == .pending }
}

/// Reads permits and answers, waiting for them where asked.
final class PermitQueries: Sendable {
  private let store: any StoreReader
  private let settings: Gateway.Settings
  private let waiters = Mutex(0)
  private let watch: AnswerWatch

  init(store: any StoreReader, settings: Gateway.Settings) {
    self.store = store
    self.settings = settings
    watch = AnswerWatch(store)
  }

  /// Ends every wait at once.
  func stop() { watch.stop() }

  func permit(
    _ environment: Environment, _ account: Account, proof: String, waitSeconds: Double
  ) throws(StoreFailure) -> PermitRow? {
    try awaited(waitSeconds) { seen throws(StoreFailure) in
      try Self.whoever(environment, account, seen) { account throws(StoreFailure) in
        try seen.row(PermitRow.key(environment, account, proof: proof)).map(Self.read)
      }
    }
  }

  /// Of several proofs of one transaction the answer decided last, a terminal one before a pending one.
  func permit(
    _ environment: Environment, _ account: Account, transaction: TransactionID, waitSeconds: Double
  ) throws(StoreFailure) -> PermitRow? {
    try awaited(waitSeconds) { seen throws(StoreFailure) in
      let rows = try seen.permits(ofTransaction: transaction.text)
      return try Self.whoever(environment, account, seen) { account throws(StoreFailure) in
        let own = rows.filter {
          $0.key.values[0].text == environment.rawValue && $0.key.values[1].text == account.text
        }
        return try own.map(Self.read).max { a, b in
          (a.isPending ? 0 : 1, a.decidedAt) < (b.isPending ? 0 : 1, b.decidedAt)
        }
      }
    }
  }

  /// The answer to a spend, a claim or an order.
  func answer(
    _ environment: Environment, _ account: Account, _ request: String, waitSeconds: Double
  ) throws(StoreFailure) -> AnswerRow? {
    try awaited(waitSeconds) { seen throws(StoreFailure) in try seen.answer(environment, account, request) }
  }

  private static func read(_ row: Row) throws(StoreFailure) -> PermitRow {
    do throws(FieldFailure) { return try PermitRow(row) } catch { throw StoreFailure(.corrupt, "\(error)") }
  }

  /// Who asks as an account that was merged into another gets what that other one has, unless the old one was answered.
  private static func whoever(
    _ environment: Environment, _ account: Account, _ seen: Seen,
    _ read: (Account) throws(StoreFailure) -> PermitRow?
  ) throws(StoreFailure) -> PermitRow? {
    let own = try read(account)
    guard own?.isPending ?? true else { return own }
    let current = try seen.current(environment, account)
    return current == account ? own : try read(current) ?? own
  }

  /// Reads, and reads again whenever a row that was looked at has changed, until the answer is final or the time is over.
  private func awaited<Found: Awaited>(
    _ seconds: Double, _ read: (Seen) throws(StoreFailure) -> Found?
  ) throws(StoreFailure) -> Found? {
    var seen = Seen(store)
    var found = try read(seen)
    guard seconds > 0, found?.isPending ?? true, enter() else { return found }
    defer { waiters.withLock { $0 -= 1 } }
    let end = DispatchTime.now() + min(seconds, settings.maxWaitSeconds)
    while found?.isPending ?? true, !watch.isStopping, .now() < end {
      watch.wait(for: seen, until: end)
      seen = Seen(store)
      found = try read(seen)
    }
    return found
  }

  private func enter() -> Bool {
    waiters.withLock {
      guard $0 < settings.maxWaiters else { return false }
      $0 += 1
      return true
    }
  }
}
