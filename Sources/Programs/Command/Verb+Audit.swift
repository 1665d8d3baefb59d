import PurchasesAssembly
import PurchasesAuditing
import PurchasesJSON

extension Setting {
  static let fromFolder = Setting("from", "DIR", "an exported folder in place of the log")
  static let toFolder = Setting("to", "DIR", "the folder to write; it must be empty or not there")
  static let offset = Setting("offset", "N", "the record at this offset")
  static let index = Setting("index", "N", "the n-th committed record of the partition, from 0")
  static let auditing: [Setting] = [.vkey, .auditKey, .auditName] + Setting.connection
}

extension Verb {
  static let auditVerify = Verb(
    words: ["audit", "verify"], summary: "Recompute the audit log from the records and check every checkpoint",
    settings: [.fromFolder, .json] + Setting.auditing,
    examples: ["purchases audit verify", "purchases audit verify --from export --vkey 'NAME+HEX+BASE64'"],
    statuses: [(1, "something can't be read"), (ExitStatus.found, "something does not hold")]
  ) { call in
    let report = try AuditTool(call.values).verify(from: call.values.text(.fromFolder)) {
      Output.progress("\($0) records")
    }
    Output.endProgress()
    if try call.values.flag(.json) { Output.bytes(json(report)) } else { explain(report) }
    return report.holds ? 0 : ExitStatus.found
  }

  private static func explain(_ report: AuditReport) {
    for tree in report.trees where tree.records > 0 {
      Output.line(
        "\(tree.partition)  \(tree.records) records, \(tree.signed) signed for in \(tree.checkpoints) checkpoints, root \(tree.root)"
      )
    }
    if let summary = report.summary { Output.line("all partitions  size \(summary.size), root \(summary.root)") }
    for (kind, count) in report.anomalies.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      Output.line("anomaly \(kind.rawValue)  \(count)")
    }
    if report.notWorkedOff > 0 { Output.line("\(report.notWorkedOff) records wait for their stage") }
    for finding in report.findings { Output.line("DOES NOT HOLD  \(finding)") }
    Output.line(
      report.holds
        ? "the audit log holds: \(report.records) records, \(report.signed) signed for"
        : "the audit log DOES NOT HOLD: \(report.findingCount) findings")
  }

  private static func json(_ report: AuditReport) -> [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
      json.field("holds", report.holds)
      json.field("records", report.records)
      json.field("signed", report.signed)
      json.field("checkpoints", report.checkpoints)
      json.field("notWorkedOff", report.notWorkedOff)
      json.field(
        "trees",
        array: { json in
          for tree in report.trees {
            json.object { json in
              json.field("partition", tree.partition.description)
              json.field("records", tree.records)
              json.field("signed", tree.signed)
              json.field("checkpoints", tree.checkpoints)
              json.field("root", tree.root)
            }
          }
        })
      if let summary = report.summary {
        json.field(
          "summary",
          object: { json in
            json.field("size", summary.size)
            json.field("root", summary.root)
          })
      }
      json.field("findingCount", report.findingCount)
      json.field(
        "findings",
        array: { json in
          for finding in report.findings {
            json.object { json in
              json.field("kind", finding.kind.rawValue)
              json.field("place", finding.place)
              json.field("explanation", finding.explanation)
            }
          }
        })
    }
    return writer.bytes + [0x0a]
  }

  static let auditProve = Verb(
    words: ["audit", "prove"], summary: "Prove that a record is in the log, with a proof that stands for itself",
    arguments: ["TOPIC/PARTITION"], settings: [.offset, .index, .fromFolder] + Setting.auditing,
    examples: [
      "purchases audit prove received/0 --offset 17 > proof",
      "purchases audit check --file proof --vkey 'NAME+HEX+BASE64'",
    ],
    statuses: [(1, "there is no such record, or no checkpoint signs for it yet")]
  ) { call in
    Output.write(
      try AuditTool(call.values).prove(
        call.arguments[0], offset: call.values.number(.offset, 0...Int64.max),
        index: call.values.number(.index, 0...Int64.max), from: call.values.text(.fromFolder)))
    return 0
  }

  static let auditCheck = Verb(
    words: ["audit", "check"], summary: "Check a proof by itself: needs the file and the public key, and nothing else",
    settings: [.file] + Setting.auditing, examples: ["purchases audit check --file proof --vkey 'NAME+HEX+BASE64'"],
    statuses: [(ExitStatus.found, "the proof does not hold")]
  ) { call in
    guard let file = call.values.text(.file) else {
      throw UsageError("purchases audit check: needs --file F (or --file -)")
    }
    do {
      let shown = try AuditTool(call.values).check(try Input.read(file, .file))
      Output.line(
        "the proof holds: record \(shown.index) of \(shown.partition), of \(shown.size) signed for, root \(shown.root)")
      return 0
    } catch let failure as ProofFailure {
      Output.line("the proof DOES NOT HOLD: \(failure)")
      return ExitStatus.found
    }
  }

  static let auditExport = Verb(
    words: ["audit", "export"],
    summary: "Copy the log and its checkpoints into a folder that can be checked without us",
    settings: [.toFolder] + Setting.auditing,
    examples: ["purchases audit export --to export && purchases audit verify --from export"],
    statuses: [(1, "something can't be read or written")]
  ) { call in
    guard let folder = call.values.text(.toFolder) else { throw UsageError("purchases audit export: needs --to DIR") }
    let outcome = try AuditTool(call.values).export(to: folder) { Output.progress("\($0) records") }
    Output.endProgress()
    Output.line(
      "\(outcome.records) records of \(outcome.partitions) partitions; \(outcome.unsigned) not signed for yet and left out"
    )
    return 0
  }
}
