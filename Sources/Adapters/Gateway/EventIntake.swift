import PurchasesContracts
import PurchasesCore
import PurchasesHTTPServer
import PurchasesJSON

/// Puts what is told over HTTP onto the log. 2xx only after the delivery report.
struct EventIntake: Sendable {
  let settings: Gateway.Settings
  let producer: any LogProducer
  let clock: any Clock
  let permits: PermitQueries?

  // MARK: One event

  func event(_ request: HTTPRequest, waitSeconds: Double) -> Answer {
    let received: ReceivedRecord
    do {
      received = try Self.read(request.body)
    } catch {
      return Self.refusal(error, bytes: request.body.count)
    }
    if let failure = deliver([received], request)[0] { return Self.undelivered(failure) }
    if let request = received.request { return asked(request, received, waitSeconds: waitSeconds) }
    var permit: PermitRow?
    if waitSeconds > 0, let permits, let environment = received.permitEnvironment, let account = received.event.account,
      let proof = received.permit
    {
      // The event is durable whatever the store says: its trouble must not turn a 202 into a failure.
      permit = try? permits.permit(environment, account, proof: proof, waitSeconds: waitSeconds)
    }
    var answer = Answer.json(202) { json in
      Self.write(received, &json)
      if let permit { json.field("permit", object: { permit.writeMembers(&$0) }) }
    }
    answer.accepted = 1
    return answer
  }

  /// 202 with the answer, if it has come; 409 where something else was asked under the same name before.
  private func asked(_ request: AskedRequest, _ received: ReceivedRecord, waitSeconds: Double) -> Answer {
    var found: AnswerRow?
    if waitSeconds > 0, let permits {
      // The event is durable whatever the store says: its trouble must not turn a 202 into a failure.
      found = try? permits.answer(request.environment, request.account, request.name, waitSeconds: waitSeconds)
    }
    let isConflict = found?.isConflict(with: request.asked) ?? false
    var answer = Answer.json(isConflict ? 409 : 202) { json in
      Self.write(received, &json)
      if isConflict { json.field("conflict", AnswerText.conflict) }
      if let found { json.field("answer", object: { found.write(&$0) }) }
    }
    answer.accepted = 1
    return answer
  }

  private static func read(_ bytes: [UInt8]) throws(FieldFailure) -> ReceivedRecord {
    try ReceivedRecord(line: bytes, allowing: EventType.reported)
  }

  private static func write(_ received: ReceivedRecord, _ json: inout JSONWriter) {
    json.field("id", received.id)
    json.field("proof", received.permit)
    if let environment = received.permitEnvironment, let account = received.event.account, let proof = received.permit {
      json.field("permitUrl", PathText.join(["v1", "permits", environment.rawValue, account.text, proof]))
    }
    if let request = received.request {
      json.field("request", request.name)
      let path = PathText.join(["v1", "answers", request.environment.rawValue, request.account.text, request.name])
      json.field("answerUrl", "\(path)?asked=\(PathText.escape(request.asked))")
    }
  }

  // MARK: Many events

  func lines(_ request: HTTPRequest) -> Answer {
    var results: [LineResult] = []
    var good: [ReceivedRecord] = []
    for (index, slice) in request.body.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
      let line = trimmed(slice)
      if line.isEmpty { continue }
      guard results.count < settings.maxLines else {
        var answer = Answer.problem(
          413, "Content Too Large", reason: "more than \(settings.maxLines) events in one request")
        answer.refused = results.count
        return answer
      }
      do {
        let received = try Self.read(Array(line))
        results.append(LineResult(line: index + 1, outcome: .good(good.count)))
        good.append(received)
      } catch {
        results.append(LineResult(line: index + 1, outcome: .refused(error, status: Self.status(bytes: line.count))))
      }
    }
    if results.isEmpty { return Self.refusal(FieldFailure("event", "is missing: the body holds no line"), bytes: 0) }
    return answer(results, good, deliver(good, request))
  }

  private struct LineResult {
    enum Outcome {
      /// Position among the good ones.
      case good(Int)
      case refused(FieldFailure, status: Int)
    }
    let line: Int
    let outcome: Outcome
  }

  private func answer(_ results: [LineResult], _ good: [ReceivedRecord], _ failures: [LogFailure?]) -> Answer {
    let failed = failures.count { $0 != nil }
    let accepted = good.count - failed
    let refused = results.count - good.count
    let status: Int
    if failed > 0 {
      // The whole request may be sent again: what is durable already has the same ids.
      status = 503
    } else if refused == 0 {
      status = 202
    } else {
      status = accepted == 0 ? 400 : 207
    }
    var answer = Answer.json(status) { json in
      json.field("accepted", accepted)
      json.field("refused", refused)
      json.field("failed", failed)
      json.field(
        "results",
        array: { json in
          for result in results {
            json.object { json in
              json.field("line", result.line)
              switch result.outcome {
              case .refused(let failure, let status):
                json.field("status", status)
                json.field("field", failure.field)
                json.field("reason", failure.reason)
              case .good(let position):
                json.field("status", failures[position] == nil ? 202 : 503)
                if failures[position] == nil { Self.write(good[position], &json) }
              }
            }
          }
        })
    }
    if failed > 0 { answer.response.headers.add("retry-after", String(Answer.retryAfterSeconds)) }
    answer.accepted = accepted
    answer.refused = refused
    return answer
  }

  // MARK: Notifications

  func notification(_ request: HTTPRequest) -> Answer {
    let received: ReceivedRecord
    do {
      received = try Self.readNotification(request.body)
    } catch {
      return Self.refusal(error, bytes: request.body.count)
    }
    if let failure = deliver([received], request)[0] { return Self.undelivered(failure) }
    var answer = Answer.json(200) { Self.write(received, &$0) }
    answer.accepted = 1
    return answer
  }

  private static func readNotification(_ body: [UInt8]) throws(FieldFailure) -> ReceivedRecord {
    // The body goes onto the log byte for byte: what Apple adds to it one day is kept.
    let received = try ReceivedRecord(type: .storeNotified, data: body)
    if case .notified(let event) = received.event, event.isBackfill {
      throw FieldFailure("backfill", "is set by this pipeline's own tools only")
    }
    return received
  }

  // MARK: Pieces

  /// Publishes and waits for the report: per event nil, or why it isn't durable as far as this request knows.
  private func deliver(_ received: [ReceivedRecord], _ request: HTTPRequest) -> [LogFailure?] {
    if received.isEmpty { return [] }
    let now = clock.now()
    let traceparent = request.headers["traceparent"]
    let records = received.map {
      $0.produced(to: settings.topics, source: settings.source, at: now, traceparent: traceparent)
    }
    guard let results = DeliveryReport.publish(records, on: producer, seconds: settings.deliverySeconds) else {
      return Array(repeating: LogFailure(.unavailable, "no delivery report in time"), count: received.count)
    }
    return results.map { if case .failure(let failure) = $0 { failure } else { nil } }
  }

  /// An event that is too large is refused for that alone, and nothing in it is looked at.
  private static func status(bytes: Int) -> Int { bytes > ReceivedRecord.maximumBytes ? 413 : 400 }

  private static func refusal(_ failure: FieldFailure, bytes: Int) -> Answer {
    var answer =
      status(bytes: bytes) == 413
      ? Answer.problem(413, "Content Too Large", field: failure.field, reason: failure.reason)
      : Answer.badRequest(field: failure.field, failure.reason)
    answer.refused = 1
    return answer
  }

  /// The log's own words stay inside: they may name hosts and topics. The kind says enough to the sender.
  private static func undelivered(_ failure: LogFailure) -> Answer {
    .unavailable("the log did not take the event (\(failure.kind.rawValue)); send it again")
  }

  private func trimmed(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var line = line.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
    while let last = line.last, last == 0x20 || last == 0x09 || last == 0x0D { line = line.dropLast() }
    return line
  }
}

enum AnswerText {
  static let conflict =
    "something else was asked under the same name before, and this is the answer to that"
}

enum PathText {
  /// An absolute path with every byte escaped that isn't unreserved, so that any identifier is one segment.
  static func join(_ segments: [String]) -> String {
    segments.map { "/" + escape($0) }.joined()
  }

  static func escape(_ segment: String) -> String {
    let hex = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in segment.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"), UInt8(ascii: ":"):
        bytes.append(byte)
      default: bytes += [UInt8(ascii: "%"), hex[Int(byte >> 4)], hex[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
