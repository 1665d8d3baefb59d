import PurchasesCore

/// Headers of the topics `parked` and `quarantine`. They stand beside the record's own, which stay as they were.
public enum SpecialHeader {
  public static let parkedPrefix = "purchases-parked-"
  public static let parkedNotBefore = "purchases-parked-not-before"
  public static let parkedFirstAt = "purchases-parked-first-at"
  public static let parkedAttempt = "purchases-parked-attempt"
  public static let parkedReason = "purchases-parked-reason"

  public static let quarantineReason = "purchases-quarantine-reason"
  public static let quarantineStage = "purchases-quarantine-stage"
  public static let quarantineTopic = "purchases-quarantine-topic"
  public static let quarantinePartition = "purchases-quarantine-partition"
  public static let quarantineOffset = "purchases-quarantine-offset"
  /// A ``QuarantineAlarm``, for what must never happen.
  public static let quarantineAlarm = "purchases-quarantine-alarm"
  /// Its value where there is none.
  public static let noAlarm = "none"
  public static let quarantineIndex = "purchases-quarantine-index"
  public static let quarantineCount = "purchases-quarantine-count"

  public static let originHeaders: Set<String> = [
    "ce_origintopic", "ce_originpartition", "ce_originoffset", "ce_outputindex", "ce_outputcount",
  ]
}

extension Parking {
  /// Reads a record of the topic `parked`; nil when it doesn't say.
  public init?(_ record: Record) {
    guard let notBefore = record.headerText(SpecialHeader.parkedNotBefore).flatMap({ Int64($0) }),
      let firstAt = record.headerText(SpecialHeader.parkedFirstAt).flatMap({ Int64($0) }),
      let attempt = record.headerText(SpecialHeader.parkedAttempt).flatMap({ Int($0) })
    else { return nil }
    self.init(
      attempt: attempt, firstParkedAt: Instant(milliseconds: firstAt), notBefore: Instant(milliseconds: notBefore))
  }
}
