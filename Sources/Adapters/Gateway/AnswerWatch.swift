import Dispatch
import Glibc
import PurchasesContracts
import Synchronization

/// What somebody who waits has seen of the store: the rows, and those that are not there. Reads and takes note.
final class Seen: RowReader {
  private let store: any StoreReader
  private(set) var rows: [RowKey: Row?] = [:]
  /// Permits by transaction.
  private(set) var permits: [String: [Row]] = [:]

  /// A device signs the same transaction anew at every launch at most; a thousand launches is more than any keeps open.
  private static let maximumProofsOfATransaction = 1000

  init(_ store: any StoreReader) { self.store = store }

  func row(_ key: RowKey) throws(StoreFailure) -> Row? {
    let row = try store.row(key)
    rows[key] = .some(row)
    return row
  }

  func permits(ofTransaction id: String) throws(StoreFailure) -> [Row] {
    let found = try Self.permits(ofTransaction: id, store)
    permits[id] = found
    return found
  }

  static func permits(ofTransaction id: String, _ store: any StoreReader) throws(StoreFailure) -> [Row] {
    try store.rows(.permit, where: "transaction", is: .text(id), limit: maximumProofsOfATransaction)
  }
}

/// One thread that looks for all who wait: hundreds who each look for themselves, as often, would cost the store and the
/// machine more than the pipeline does. It only tells who has something new to read. While nobody waits there is no thread.
final class AnswerWatch: Sendable {
  private final class Waiter: Sendable {
    let rows: [RowKey: Row?]
    let permits: [String: [Row]]
    let told = DispatchSemaphore(value: 0)

    init(_ seen: Seen) { (rows, permits) = (seen.rows, seen.permits) }
  }

  private struct State {
    var waiters: [ObjectIdentifier: Waiter] = [:]
    var isWatched = false
    var isStopping = false
  }

  private let store: any StoreReader
  private let state = Mutex(State())
  private let looking = DispatchQueue(label: "purchases.gateway.watch")

  /// Between two looks: short beside the pipeline's own time, in which a permit becomes durable.
  private static let pauseSeconds = 0.005
  /// Looking gets at most a twentieth of a core, however many wait, and a store that is slow to answer half of the time.
  private static let pausePerWork = 19.0

  init(_ store: any StoreReader) { self.store = store }

  /// Waits until something of what was seen has changed, the store can't be read, or the time is over. It may come back
  /// without a reason.
  func wait(for seen: Seen, until deadline: DispatchTime) {
    let waiter = Waiter(seen)
    let id = ObjectIdentifier(waiter)
    let mustStart: Bool? = state.withLock { state in
      guard !state.isStopping else { return nil }
      state.waiters[id] = waiter
      defer { state.isWatched = true }
      return !state.isWatched
    }
    guard let mustStart else { return }
    if mustStart { looking.async { [self] in watch() } }
    _ = waiter.told.wait(timeout: deadline)
    state.withLock { $0.waiters[id] = nil }
  }

  /// Ends all waits at once, and lets nobody wait any more.
  func stop() {
    let waiters = state.withLock { state in
      state.isStopping = true
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.told.signal() }
  }

  var isStopping: Bool { state.withLock { $0.isStopping } }

  private func watch() {
    var pause = Self.pauseSeconds
    while true {
      usleep(UInt32(pause * 1e6))
      let waiters = state.withLock { state in
        state.isWatched = !state.waiters.isEmpty
        return Array(state.waiters.values)
      }
      if waiters.isEmpty { return }
      let (begin, work) = (Self.seconds(CLOCK_MONOTONIC), Self.seconds(CLOCK_THREAD_CPUTIME_ID))
      for waiter in news(for: waiters) { waiter.told.signal() }
      let (took, worked) = (Self.seconds(CLOCK_MONOTONIC) - begin, Self.seconds(CLOCK_THREAD_CPUTIME_ID) - work)
      pause = max(Self.pauseSeconds, took, worked * Self.pausePerWork)
    }
  }

  private static func seconds(_ clock: clockid_t) -> Double {
    var now = timespec()
    clock_gettime(clock, &now)
    return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
  }

  /// Who has something new to read. Of a store that can't be read everybody finds out for himself.
  private func news(for waiters: [Waiter]) -> [Waiter] {
    do throws(StoreFailure) {
      let found = try store.rows(Array(Set(waiters.flatMap(\.rows.keys))))
      var permits: [String: [Row]] = [:]
      for id in Set(waiters.flatMap(\.permits.keys)) {
        permits[id] = try Seen.permits(ofTransaction: id, store)
      }
      return waiters.filter { waiter in
        waiter.rows.contains { $0.value != found[$0.key] } || waiter.permits.contains { $0.value != permits[$0.key] }
      }
    } catch { return waiters }
  }
}
