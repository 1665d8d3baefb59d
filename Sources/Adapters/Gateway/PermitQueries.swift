import Glibc
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
  private let stopping = Atomic(false)

  /// The first look comes soon, since the pipeline needs some tens of milliseconds; the pauses grow, so that long waits
  /// cost the store little.
  private static let firstPauseMilliseconds = 15.0
  private static let longestPauseMilliseconds = 400.0
  private static let growth = 1.4

  init(store: any StoreReader, settings: Gateway.Settings) {
    self.store = store
    self.settings = settings
  }

  /// Ends every wait within the longest pause.
  func stop() {
    stopping.store(true, ordering: .relaxed)
  }

  func permit(
    _ environment: Environment, _ account: Account, proof: String, waitSeconds: Double
  ) throws(StoreFailure) -> PermitRow? {
    try repeated(waitSeconds) { () throws(StoreFailure) in
      try whoever(environment, account) { account throws(StoreFailure) in
        try store.row(PermitRow.key(environment, account, proof: proof)).map(Self.read)
      }
    }
  }

  /// Of several proofs of one transaction the answer decided last, a terminal one before a pending one.
  func permit(
    _ environment: Environment, _ account: Account, transaction: TransactionID, waitSeconds: Double
  ) throws(StoreFailure) -> PermitRow? {
    try repeated(waitSeconds) { () throws(StoreFailure) in
      let rows = try store.rows(
        .permit, where: "transaction", is: .text(transaction.text), limit: Self.maximumProofsOfATransaction)
      return try whoever(environment, account) { account throws(StoreFailure) in
        let own = rows.filter {
          $0.key.values[0].text == environment.rawValue && $0.key.values[1].text == account.text
        }
        return try own.map(Self.read).max { a, b in
          (a.isPending ? 0 : 1, a.decidedAt) < (b.isPending ? 0 : 1, b.decidedAt)
        }
      }
    }
  }

  private static func read(_ row: Row) throws(StoreFailure) -> PermitRow {
    do throws(FieldFailure) { return try PermitRow(row) } catch { throw StoreFailure(.corrupt, "\(error)") }
  }

  /// Who asks as an account that was merged into another gets what that other one has, unless the old one was answered.
  private func whoever(
    _ environment: Environment, _ account: Account, _ read: (Account) throws(StoreFailure) -> PermitRow?
  ) throws(StoreFailure) -> PermitRow? {
    let own = try read(account)
    guard own?.isPending ?? true else { return own }
    let current = try store.current(environment, account)
    return current == account ? own : try read(current) ?? own
  }

  /// A device signs the same transaction anew at every launch at most; a thousand launches is more than any keeps open.
  private static let maximumProofsOfATransaction = 1000

  /// The answer to a spend, a claim or an order.
  func answer(
    _ environment: Environment, _ account: Account, _ request: String, waitSeconds: Double
  ) throws(StoreFailure) -> AnswerRow? {
    try repeated(waitSeconds) { () throws(StoreFailure) in
      try store.answer(environment, account, request)
    }
  }

  private func repeated<Found: Awaited>(
    _ seconds: Double, _ read: () throws(StoreFailure) -> Found?
  ) throws(StoreFailure) -> Found? {
    var found = try read()
    guard seconds > 0, found?.isPending ?? true, enter() else { return found }
    defer { waiters.withLock { $0 -= 1 } }
    let end = ContinuousClock.now + .seconds(min(seconds, settings.maxWaitSeconds))
    var pause = Self.firstPauseMilliseconds
    while found?.isPending ?? true, !stopping.load(ordering: .relaxed) {
      let left = ContinuousClock.now.duration(to: end)
      guard left > .zero else { break }
      let milliseconds = min(pause, Double(left.components.attoseconds) / 1e15 + Double(left.components.seconds) * 1e3)
      usleep(UInt32(max(1, milliseconds * 1000)))
      pause = min(pause * Self.growth, Self.longestPauseMilliseconds)
      found = try read()
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
