/// Every event of the pipeline. On the wire a type is its name and version: `payment.purchased.v1`.
public enum EventType: String, Sendable, Hashable, CaseIterable {
  // received
  case paymentAdded = "payment.added"
  case paymentDeferred = "payment.deferred"
  case paymentPurchased = "payment.purchased"
  case paymentFailed = "payment.failed"
  case paymentRestored = "payment.restored"
  case paymentFinished = "payment.finished"
  case restoreStarted = "restore.started"
  case restoreCompleted = "restore.completed"
  case restoreFailed = "restore.failed"
  case storeNotified = "store.notified"
  case purchaseClaimed = "purchase.claimed"
  case creditSpendRequested = "credit.spend.requested"
  case accessOrdered = "access.ordered"
  case operatorActed = "operator.acted"
  // verified
  case purchaseVerified = "purchase.verified"
  case purchaseRejected = "purchase.rejected"
  case purchasePending = "purchase.pending"
  case factNoted = "fact.noted"
  // owned
  case purchaseOwned = "purchase.owned"
  case purchaseTransferred = "purchase.transferred"
  case purchaseUnowned = "purchase.unowned"
  case clockTicked = "clock.ticked"
  case consentRescinded = "consent.rescinded"
  // entitlements
  case entitlementGranted = "entitlement.granted"
  case entitlementExtended = "entitlement.extended"
  case entitlementReduced = "entitlement.reduced"
  case entitlementRevoked = "entitlement.revoked"
  case entitlementExpired = "entitlement.expired"
  case creditAdded = "credit.added"
  case creditRemoved = "credit.removed"
  case paymentFinishable = "payment.finishable"
  // audit
  case auditCheckpointed = "audit.checkpointed"
  case auditAnomalyFound = "audit.anomaly.found"
  // catalogue
  case cataloguePublished = "catalogue.published"

  /// The version that this program writes; older ones are lifted when read.
  public var version: Int { 1 }

  public var wireName: String { rawValue + ".v" + String(version) }

  public enum Reading: Sendable, Hashable {
    case known(EventType, version: Int)
    /// One of ours, written by a newer program.
    case newer(EventType, version: Int)
    case unknown(String)
  }

  public static func read(_ wire: String) -> Reading {
    guard let type = knownByWireName[wire] else { return readRare(wire) }
    return .known(type, version: type.version)
  }

  private static let knownByWireName = Dictionary(uniqueKeysWithValues: allCases.map { ($0.wireName, $0) })

  private static func readRare(_ wire: String) -> Reading {
    guard let mark = wire.lastIndex(of: "."), wire[wire.index(after: mark)...].first == "v",
      let version = Int(wire[wire.index(mark, offsetBy: 2)...]), version >= 1,
      let type = EventType(rawValue: String(wire[..<mark]))
    else { return .unknown(wire) }
    return version > type.version ? .newer(type, version: version) : .known(type, version: version)
  }

  /// The types that a payment queue or a back end may report.
  public static let reported: [EventType] = [
    .paymentAdded, .paymentDeferred, .paymentPurchased, .paymentFailed, .paymentRestored, .paymentFinished,
    .restoreStarted, .restoreCompleted, .restoreFailed, .purchaseClaimed, .creditSpendRequested,
  ]
}
