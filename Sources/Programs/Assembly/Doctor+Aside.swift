import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// What has been put aside: parked, put into quarantine, told as an anomaly.
extension Doctor {
  /// Pauses between tries grow to an hour, so what has waited for three has been tried several times: Apple or the way
  /// there is out of order, or a setting is.
  private static let parkedPatience: Int64 = 3 * 3_600_000
  private static let page = 500

  func parked(_ log: any EventLog) -> Finding {
    do {
      let name = deployment.topics.name(.parked)
      let committed = try log.committed(group: deployment.group(.verification), topic: name)
      var count: Int64 = 0
      var oldest: Instant?
      var reasons: [String: Int64] = [:]
      let start: (Int32, OffsetBounds) -> Int64 = { number, bounds in committed[number] ?? bounds.start }
      try read(log, name, from: start) { stored in
        count += 1
        reasons[stored.record.headerText(SpecialHeader.parkedReason) ?? "?", default: 0] += 1
        let since = Parking(stored.record)?.firstParkedAt ?? stored.record.timestamp
        oldest = min(oldest ?? since, since)
      }
      guard let oldest else { return Finding("parked", .well, "nothing is parked") }
      let text =
        "\(Self.count(count, "record waits", "records wait")) for Apple (\(Self.list(reasons))), the oldest \(age(oldest))"
      guard oldest < now.advanced(byMilliseconds: -Self.parkedPatience) else { return Finding("parked", .well, text) }
      return Finding(
        "parked", .wrong,
        "\(text). See whether the verification stage reaches Apple; nothing is lost or refused meanwhile.")
    } catch { return Finding("parked", error) }
  }

  func quarantined(_ log: any EventLog) -> Finding {
    do {
      var count: Int64 = 0
      var unreadable: Int64 = 0
      var contradictions: Int64 = 0
      try read(log, .quarantine) { stored in
        count += 1
        switch QuarantineAlarm(stored.record) {
        case .unreadable: unreadable += 1
        case .contradiction: contradictions += 1
        case nil: break
        }
      }
      guard count > 0 else { return Finding("quarantine", .well, "nothing\(sinceText)") }
      let foreign =
        unreadable > 0 ? ", \(unreadable) of them in a topic that only stages may write: see who else can" : ""
      let second = contradictions > 0 ? ", \(contradictions) of them a second body under a notification's UUID" : ""
      return Finding(
        "quarantine", .wrong,
        "\(Self.count(count, "record", "records"))\(sinceText) that could not be processed\(foreign)\(second). `purchases quarantine "
          + "list` tells why; --since leaves out what you have dealt with.")
    } catch { return Finding("quarantine", error) }
  }

  func anomalies(_ log: any EventLog) -> Finding {
    do {
      var kinds: [String: Int64] = [:]
      var newest: Instant?
      // What the clock brings may stand twice in the topic: it counts once.
      var seen: Set<String> = []
      try read(log, .audit) { stored in
        guard let envelope = try? Envelope(reading: stored.record), envelope.type == .auditAnomalyFound,
          seen.insert(envelope.id).inserted, let value = stored.record.value
        else { return }
        let event = try? AuditEvent(type: envelope.type, data: value)
        guard case .anomaly(let anomaly) = event else { return }
        kinds[anomaly.kind.rawValue, default: 0] += 1
        newest = max(newest ?? stored.record.timestamp, stored.record.timestamp)
      }
      guard let newest else { return Finding("anomalies", .well, "none\(sinceText)") }
      return Finding(
        "anomalies", .wrong,
        "\(Self.list(kinds))\(sinceText), the newest \(age(newest)). `purchases tail audit` names the transactions and `purchases "
          + "explain` their accounts' events; --since leaves out what you have dealt with.")
    } catch { return Finding("anomalies", error) }
  }

  private var sinceText: String { since.map { " since \($0.rfc3339)" } ?? "" }

  private static func list(_ counts: [String: Int64]) -> String {
    counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
  }

  /// Reads a topic from `since` on, or whole.
  private func read(_ log: any EventLog, _ topic: Topic, _ body: (StoredRecord) -> Void) throws {
    let name = deployment.topics.name(topic)
    try read(
      log, name,
      from: { number, bounds in
        guard let since else { return bounds.start }
        return try log.offset(of: TopicPartition(name, number), at: since) ?? bounds.end
      },
      { stored in
        // Timestamps in a partition go back and forth: the first that is late enough has earlier ones behind it.
        if since.map({ stored.record.timestamp >= $0 }) ?? true { body(stored) }
      })
  }

  private func read(
    _ log: any EventLog, _ topic: String, from start: (Int32, OffsetBounds) throws -> Int64,
    _ body: (StoredRecord) -> Void
  ) throws {
    let reader = try log.reader()
    defer { reader.close() }
    for (number, bounds) in try log.bounds(of: topic).sorted(by: { $0.key < $1.key }) {
      var offset = try start(number, bounds)
      while offset < bounds.end {
        let records = try reader.read(TopicPartition(topic, number), from: offset, max: Self.page)
        guard let last = records.last else { break }
        records.forEach(body)
        offset = last.coordinates.offset + 1
      }
    }
  }
}
