import PurchasesContracts
import PurchasesCore

/// Makes the records that one incoming record leads to: ids, origin, time and trace are given here, once for all stages.
struct Derivation: Sendable {
  let stage: StageName
  let topics: TopicSettings

  /// Outputs of one record in the order of its actions. `count` is known before the first is made.
  func records(of incoming: Incoming, _ actions: [Action], moment: Moment) -> [ProducedRecord] {
    let count = actions.reduce(0) { total, action in
      switch action {
      case .emit, .park, .quarantine: total + 1
      case .write, .stop: total
      }
    }
    guard count > 0 else { return [] }
    var records: [ProducedRecord] = []
    records.reserveCapacity(count)
    for action in actions {
      let index = records.count
      switch action {
      case .emit(let event): records.append(derived(event, from: incoming, index: index, count: count))
      case .park(let until, let reason):
        records.append(parked(incoming, until: until, reason: reason, moment: moment, index: index, count: count))
      case .quarantine(let reason, let alarm):
        records.append(quarantined(incoming.stored, reason: reason, alarm: alarm, index: index, count: count))
      case .write, .stop: break
      }
    }
    return records
  }

  private func derived(_ event: Outgoing, from incoming: Incoming, index: Int, count: Int) -> ProducedRecord {
    let source = incoming.event
    // A record whose headers can't be read has no id; its place in the log is as good a name.
    let sourceID = source?.id ?? incoming.coordinates.description
    let envelope = Envelope(
      id: Envelope.derivedID(
        source: sourceID, stage: stage.rawValue, index: index, type: event.type, key: event.key),
      source: "/purchases/\(stage.rawValue)", type: event.type, subject: event.subject,
      time: source?.time ?? incoming.timestamp, traceparent: source?.traceparent,
      origin: Envelope.Origin(coordinates: incoming.coordinates, index: index, count: count))
    return ProducedRecord(
      topic: topics.name(event.topic),
      record: Record(
        key: event.key.map { Array($0.utf8) }, value: event.data, headers: envelope.headers,
        timestamp: incoming.timestamp))
  }

  private func parked(
    _ incoming: Incoming, until: Instant, reason: String, moment: Moment, index: Int, count: Int
  ) -> ProducedRecord {
    var record = incoming.stored.record
    record.headers.removeAll {
      $0.name.hasPrefix(SpecialHeader.parkedPrefix) || SpecialHeader.originHeaders.contains($0.name)
    }
    let firstAt = moment.parking?.firstParkedAt ?? moment.now
    let origin = incoming.coordinates
    record.headers += [
      Header("ce_origintopic", origin.topic), Header("ce_originpartition", String(origin.partition)),
      Header("ce_originoffset", String(origin.offset)), Header("ce_outputindex", String(index)),
      Header("ce_outputcount", String(count)),
      Header(SpecialHeader.parkedNotBefore, String(until.milliseconds)),
      Header(SpecialHeader.parkedFirstAt, String(firstAt.milliseconds)),
      Header(SpecialHeader.parkedAttempt, String((moment.parking?.attempt ?? 0) + 1)),
      Header(SpecialHeader.parkedReason, reason),
    ]
    return ProducedRecord(topic: topics.name(.parked), record: record)
  }

  func quarantined(_ stored: StoredRecord, reason: String, alarm: QuarantineAlarm?, index: Int, count: Int)
    -> ProducedRecord
  {
    var record = stored.record
    record.headers += [
      Header(SpecialHeader.quarantineReason, reason), Header(SpecialHeader.quarantineStage, stage.rawValue),
      Header(SpecialHeader.quarantineTopic, stored.coordinates.topic),
      Header(SpecialHeader.quarantinePartition, String(stored.coordinates.partition)),
      Header(SpecialHeader.quarantineOffset, String(stored.coordinates.offset)),
      Header(SpecialHeader.quarantineAlarm, alarm?.rawValue ?? SpecialHeader.noAlarm),
      Header(SpecialHeader.quarantineIndex, String(index)), Header(SpecialHeader.quarantineCount, String(count)),
    ]
    return ProducedRecord(topic: topics.name(.quarantine), record: record)
  }

  /// An event that the clock brought.
  func scheduled(_ scheduled: Scheduled) -> ProducedRecord? {
    guard let event = scheduled.event else { return nil }
    let envelope = Envelope(
      id: scheduled.id, source: "/purchases/\(stage.rawValue)", type: event.type, subject: event.subject,
      time: scheduled.timestamp)
    return ProducedRecord(
      topic: topics.name(event.topic),
      record: Record(
        key: event.key.map { Array($0.utf8) }, value: event.data, headers: envelope.headers,
        timestamp: scheduled.timestamp))
  }
}
