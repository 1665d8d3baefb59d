import PurchasesContracts
import PurchasesCore

/// How long a record waits whose verdict can't be told yet.
public enum ParkingPause {
  /// The first pause: most outages are over by then.
  public static let first: Int64 = 60_000
  /// The longest: a parked record holds up those parked after it in the same partition, so none waits longer at a time.
  public static let longest: Int64 = 3_600_000
  /// After three days somebody is told, again. The record stays parked: pending never turns into refused by itself.
  public static let alarmAfter: Int64 = 72 * 3_600_000

  /// The pause after so many parkings before.
  public static func milliseconds(afterParkings count: Int) -> Int64 {
    // More doublings than these pass the longest pause anyway.
    min(longest, first << Int64(min(max(count, 0), 8)))
  }
}

extension VerificationStage {
  func pending(_ proof: PendingProof, _ report: Report, stated: Environment?, _ context: Context) -> [Action] {
    let parking = context.moment.parking
    let parkings = parking?.attempt ?? 0
    let pause = ParkingPause.milliseconds(afterParkings: parkings)
    let until = min(proof.until, context.moment.now.advanced(byMilliseconds: pause))
    let park = Action.park(until: until, reason: proof.reason.rawValue)
    guard isNews(parking, until) else { return [park] }
    let received = ReceivedRecord(context.event, data: context.data)
    let event = PurchasePending(
      environment: stated ?? received.environment, proof: proof.digest, reason: proof.reason.rawValue,
      attempt: parkings + 1, nextTry: until, report: report)
    return [context.emit(.pending(event), key: received.key), park]
  }

  /// The first parking is told, and the one that takes the wait past the limit; the tries between would only be noise.
  private func isNews(_ parking: Parking?, _ until: Instant) -> Bool {
    guard let parking else { return true }
    let limit = parking.firstParkedAt.advanced(byMilliseconds: ParkingPause.alarmAfter)
    return parking.notBefore < limit && until >= limit
  }
}
