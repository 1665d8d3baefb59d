import PurchasesCore
import PurchasesJSON

/// That a customer agreed to data about their purchase going to Apple. There is no way to send any without one: whoever
/// makes it says where the consent is on record.
public struct CustomerConsent: Sendable, Hashable {
  /// Such as the id of the record that holds it. It goes into our log, never to Apple.
  public let record: String

  public init(onRecord record: String) { self.record = record }
}

/// What a customer made of a purchase that they want their money back for (version 2 of Apple's request).
public struct ConsumptionInformation: Sendable, Hashable {
  public enum Delivery: String, Sendable, Hashable, CaseIterable {
    case delivered = "DELIVERED"
    case qualityIssue = "UNDELIVERED_QUALITY_ISSUE"
    case wrongItem = "UNDELIVERED_WRONG_ITEM"
    case serverOutage = "UNDELIVERED_SERVER_OUTAGE"
    case other = "UNDELIVERED_OTHER"
  }

  public enum RefundPreference: String, Sendable, Hashable, CaseIterable {
    case decline = "DECLINE"
    case grantFull = "GRANT_FULL"
    case grantProrated = "GRANT_PRORATED"
  }

  /// All of it, in the thousandths of a percent that Apple counts in.
  public static let wholeConsumption: Int64 = 100_000

  public var consent: CustomerConsent
  public var delivery: Delivery
  /// Whether the customer could try it, or read what it is, before they bought.
  public var sampleProvided: Bool
  /// Thousandths of a percent, 0 to 100000; nil for a subscription, whose share Apple counts itself.
  public var consumed: Int64?
  public var preference: RefundPreference?

  public init(
    consent: CustomerConsent, delivery: Delivery, sampleProvided: Bool, consumed: Int64? = nil,
    preference: RefundPreference? = nil
  ) {
    self.consent = consent
    self.delivery = delivery
    self.sampleProvided = sampleProvided
    self.consumed = consumed
    self.preference = preference
  }

  /// Why Apple would refuse it; nil for what it takes.
  var fault: String? {
    guard let consumed else { return nil }
    guard (0...Self.wholeConsumption).contains(consumed) else {
      return "the consumed share must be 0 to \(Self.wholeConsumption) thousandths of a percent"
    }
    guard delivery == .delivered || consumed == 0 else { return "what was not delivered can't have been consumed" }
    return nil
  }

  var body: [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
      json.field("customerConsented", true)
      json.field("deliveryStatus", delivery.rawValue)
      json.field("sampleContentProvided", sampleProvided)
      json.field("consumptionPercentage", consumed)
      json.field("refundPreference", preference?.rawValue)
    }
    return writer.bytes
  }
}
