import PurchasesContracts
import PurchasesRunner

/// Opens what a service stands on. A process that is started again, as after a crash, may meet the end of the same fault:
/// a log or a store that can't be reached is tried again for a while, and each try that failed is told. What no time will
/// mend (a wrong password, an unknown database, a newer schema) is thrown at once.
struct Beginning {
  let stop: StopSignal
  let logger: Logger
  /// Whoever runs to an end and is read by a person, or by a script, hears at once what is wrong.
  let isPatient: Bool
  private let pacing = MachinePacing()

  /// Longer than a database's restart or a broker's election takes; whoever mistyped an address has read why by then.
  static let patienceMilliseconds: Int64 = 60_000

  func open<Value>(_ what: String, _ body: () throws -> Value) throws -> Value {
    let begin = pacing.milliseconds()
    var backOff = BackOff(limitMilliseconds: 2_000)
    while true {
      do { return try body() } catch {
        guard isPatient, Self.canHeal(error), pacing.milliseconds() - begin < Self.patienceMilliseconds else {
          throw error
        }
        guard !stop.isSet else { throw Service.Stopped() }
        let pause = backOff.next(pacing.chance)
        logger.warning(
          "\(what) can't be reached yet", ["reason": String(describing: error), "pause_ms": String(pause)])
        pacing.pause(milliseconds: pause, until: stop)
        guard !stop.isSet else { throw Service.Stopped() }
      }
    }
  }

  private static func canHeal(_ error: any Error) -> Bool {
    if let failure = error as? LogFailure { return failure.kind == .unavailable }
    if let failure = error as? StoreFailure { return failure.kind == .unavailable }
    return false
  }
}
