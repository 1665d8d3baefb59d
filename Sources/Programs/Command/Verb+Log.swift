import Foundation
import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesRunner

extension Setting {
  static let file = Setting("file", "F", "the file to read; - is standard input")
  static let from = Setting("from", "TIME", "begin at this time (RFC 3339) in place of the beginning")
  static let follow = Setting("follow", nil, "go on when the end is reached")
  static let limit = Setting("limit", "N", "stop after so many records")
}

extension Verb {
  static let publish = Verb(
    words: ["publish"], summary: "Put payment-queue events from NDJSON lines on the log",
    settings: [.file] + Setting.connection + [.json],
    examples: [
      "purchases publish --file events.ndjson",
      #"echo '{"type":"payment.added","environment":"Sandbox","account":"a1","attemptId":"1","productId":"coins.100"}' | purchases publish --file -"#,
    ],
    statuses: [(1, "the log failed; lines that are not on it are named"), (3, "some lines were refused")]
  ) { call in
    guard let file = call.values.text(.file) else {
      throw UsageError("purchases publish: needs --file F (or --file -)")
    }
    let input = try Input.read(file, .file)
    let deployment = try Deployment(call.values)
    let log = try deployment.openLogWithTopics()
    defer { log.close() }
    let producer = try log.producer()
    defer { _ = producer.close(withinMilliseconds: 10_000) }
    let outcome = Publication(producer: producer, topics: deployment.topics, clock: deployment.clock).publish(input)
    if try call.values.flag(.json) { Output.bytes(json(outcome)) } else { explain(outcome) }
    if outcome.failure != nil { return ExitStatus.failed }
    return outcome.refused.isEmpty ? 0 : ExitStatus.refused
  }

  private static func explain(_ outcome: Publication.Outcome) {
    for refusal in outcome.refused { Output.line("line \(refusal.line): refused: \(refusal.field): \(refusal.reason)") }
    for duplicate in outcome.duplicates { Output.line("line \(duplicate.line): duplicate of line \(duplicate.sameAs)") }
    if let failure = outcome.failure {
      Output.line(
        "line \(failure.line): not on the log (\(failure.reason)); publish this line and those after it again")
    }
    let lost = outcome.notOnLog > 0 ? ", \(outcome.notOnLog) not on the log" : ""
    Output.line(
      "\(outcome.accepted) accepted, \(outcome.duplicates.count) duplicate, \(outcome.refused.count) refused\(lost)")
  }

  private static func json(_ outcome: Publication.Outcome) -> [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
      json.field("accepted", outcome.accepted)
      json.field(
        "duplicates",
        array: { json in
          for duplicate in outcome.duplicates {
            json.object { json in
              json.field("line", duplicate.line)
              json.field("sameAs", duplicate.sameAs)
            }
          }
        })
      json.field(
        "refused",
        array: { json in
          for refusal in outcome.refused {
            json.object { json in
              json.field("line", refusal.line)
              json.field("field", refusal.field)
              json.field("reason", refusal.reason)
            }
          }
        })
      if let failure = outcome.failure {
        json.field("failedAtLine", failure.line)
        json.field("failure", failure.reason.description)
        json.field("notOnLog", outcome.notOnLog)
      }
    }
    return writer.bytes + [0x0a]
  }

  static let tail = Verb(
    words: ["tail"], summary: "Print a topic's records as JSON lines", arguments: ["TOPIC"],
    settings: [.from, .follow, .limit] + Setting.connection,
    examples: ["purchases tail entitlements", "purchases tail quarantine --follow | jq .headers"],
    statuses: [(1, "the log can't be read")]
  ) { call in
    guard let topic = Topic(rawValue: call.arguments[0]) else {
      throw UsageError(
        "purchases tail: TOPIC must be one of \(Topic.allCases.map(\.rawValue).joined(separator: ", ")), and not "
          + call.arguments[0])
    }
    let stop = StopSignal()
    Signals.stop(stop)
    let deployment = try Deployment(call.values)
    let from = try instant(call, .from)
    let log = try deployment.openLog()
    defer { log.close() }
    try TopicTail(log: log, topic: deployment.topics.name(topic)).run(
      from: from, follow: call.values.flag(.follow), limit: call.values.number(.limit, 1...Int64.max), until: stop
    ) { Output.bytes(RecordLine.json($0)) }
    return 0
  }

  static func instant(_ call: Call, _ setting: Setting) throws(UsageError) -> Instant? {
    guard let text = call.values.text(setting) else { return nil }
    guard let instant = Instant(rfc3339: text) else {
      throw UsageError("--\(setting.name): must be a time as RFC 3339 writes it, such as 2026-11-30T02:29:41Z")
    }
    return instant
  }

  static let topics = Verb(
    words: ["topics"], summary: "Create what topics are missing and list all with their sizes",
    settings: Setting.connection + [.json], examples: ["purchases topics --log kafka://localhost:9092 --replication 3"],
    statuses: [(1, "the log can't be reached, or refuses")]
  ) { call in
    let deployment = try Deployment(call.values)
    let log = try deployment.openLogWithTopics()
    defer { log.close() }
    for topic in Topic.allCases {
      let name = deployment.topics.name(topic)
      let bounds = try log.bounds(of: name).sorted { $0.key < $1.key }
      if try call.values.flag(.json) {
        var writer = JSONWriter()
        writer.object { json in
          json.field("topic", name)
          json.field(
            "partitions",
            array: { json in
              for (partition, bound) in bounds {
                json.object { json in
                  json.field("partition", Int64(partition))
                  json.field("start", bound.start)
                  json.field("end", bound.end)
                }
              }
            })
        }
        Output.bytes(writer.bytes + [0x0a])
      } else {
        Output.line("\(name)  " + bounds.map { "\($0.key):\($0.value.start)-\($0.value.end)" }.joined(separator: "  "))
      }
    }
    return 0
  }
}
