import Glibc
import Synchronization

/// The numbered steps of a batch's way at which a debug build can be told to end at once, as by SIGKILL:
/// `PURCHASES_CRASH_AT=STEP:COUNT` ends the process the COUNT-th time that it comes to the step. A release build has none.
public enum CrashPoint: String, CaseIterable, Sendable {
  case polled = "1-polled"
  case decided = "2-decided"
  case storeCommitted = "3-store-committed"
  case logBegun = "4-log-begun"
  case logCommitted = "5-log-committed"
  case recoveryRead = "6-recovery-read"
  case recoveryPublished = "7-recovery-published"

  #if DEBUG
    private static let wanted: (point: CrashPoint, count: Int)? = {
      guard let value = getenv("PURCHASES_CRASH_AT").map({ String(cString: $0) }) else { return nil }
      let parts = value.split(separator: ":")
      guard parts.count == 2, let point = CrashPoint(rawValue: String(parts[0])), let count = Int(parts[1]), count > 0
      else {
        preconditionFailure("PURCHASES_CRASH_AT is STEP:COUNT, with STEP one of \(allCases.map(\.rawValue))")
      }
      return (point, count)
    }()
    private static let reached = Atomic(0)

    func reach() {
      guard let wanted = Self.wanted, wanted.point == self else { return }
      if Self.reached.add(1, ordering: .relaxed).newValue == wanted.count { kill(getpid(), SIGKILL) }
    }
  #else
    @inline(__always) func reach() {}
  #endif
}
