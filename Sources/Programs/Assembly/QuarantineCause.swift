import PurchasesContracts

/// Why a record is in quarantine and where it came from, in words for people.
public struct QuarantineCause: Sendable {
  /// The stage and its reason.
  public let text: String
  /// `TOPIC/PARTITION/OFFSET` of the record that could not be processed.
  public let place: String
  public let isAlarm: Bool

  public init(_ stored: StoredRecord) {
    let mark = QuarantineMark(stored.record)
    text = mark.map { "\($0.stage): \($0.reason)" } ?? "not written by a stage: somebody else writes to this topic"
    place = (mark?.origin ?? stored.coordinates).description
    isAlarm = mark?.alarm != nil
  }
}
