/// What a stage's runner wrote beside a record when it put it into quarantine.
public struct QuarantineMark: Sendable, Hashable {
  /// Where the record lay.
  public let origin: Coordinates
  public let stage: String
  public let reason: String
  public let alarm: QuarantineAlarm?
  public let index: Int
  public let count: Int

  private static let longestStage = 64

  /// nil for a record that no runner put there.
  public init?(_ record: Record) {
    func text(_ name: String) -> String? { record.lastHeaderText(name) }
    guard let topic = text(SpecialHeader.quarantineTopic),
      let partition = text(SpecialHeader.quarantinePartition).flatMap({ Int32($0) }), partition >= 0,
      let offset = text(SpecialHeader.quarantineOffset).flatMap({ Int64($0) }), offset >= 0,
      let stage = text(SpecialHeader.quarantineStage)
    else { return nil }
    origin = Coordinates(topic: topic, partition: partition, offset: offset)
    self.stage = String(stage.prefix(Self.longestStage))
    reason = text(SpecialHeader.quarantineReason) ?? ""
    alarm = QuarantineAlarm(record)
    index = text(SpecialHeader.quarantineIndex).flatMap { Int($0) } ?? 0
    count = text(SpecialHeader.quarantineCount).flatMap { Int($0) } ?? 1
  }
}

extension QuarantineAlarm {
  public init?(_ record: Record) {
    guard let alarm = record.lastHeaderText(SpecialHeader.quarantineAlarm).flatMap({ Self(rawValue: $0) }) else {
      return nil
    }
    self = alarm
  }
}

extension Record {
  /// The runner's headers come after the record's own, which anybody may have written: the last one is the runner's.
  fileprivate func lastHeaderText(_ name: String) -> String? { headers.last { $0.name == name }?.text }
}
