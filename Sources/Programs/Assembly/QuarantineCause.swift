import PurchasesContracts
import PurchasesRunner

/// Why a record is in quarantine and where it came from, as the stage that put it there wrote beside it.
public struct QuarantineCause: Sendable {
  /// The stage and its reason.
  public let text: String
  /// `TOPIC/PARTITION/OFFSET` of the record that could not be processed.
  public let place: String
  public let isAlarm: Bool

  public init(_ stored: StoredRecord) {
    let record = stored.record
    isAlarm = record.headerText(SpecialHeader.quarantineAlarm).flatMap { QuarantineAlarm(rawValue: $0) } != nil
    guard let stage = record.headerText(SpecialHeader.quarantineStage),
      let reason = record.headerText(SpecialHeader.quarantineReason),
      let topic = record.headerText(SpecialHeader.quarantineTopic),
      let partition = record.headerText(SpecialHeader.quarantinePartition),
      let offset = record.headerText(SpecialHeader.quarantineOffset)
    else {
      text = "not written by a stage: somebody else writes to this topic"
      place = stored.coordinates.description
      return
    }
    text = "\(stage): \(reason)"
    place = "\(topic)/\(partition)/\(offset)"
  }
}
