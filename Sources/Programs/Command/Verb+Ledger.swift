import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesJSON

extension Verb {
  static let ledger = Verb(
    words: ["ledger"],
    summary: "An account's credits, line by line: what moved, from where to where, and the balance after it",
    settings: [.account, .anyEnvironment, .unit.explained("only this unit of credits"), .json] + Setting.connection,
    examples: ["purchases ledger --account 0f4c… --unit coins"],
    statuses: [(1, "the store can't be read"), (ExitStatus.found, "there is no line")]
  ) { call in
    let account = try account(call)
    let deployment = try Deployment(call.values)
    let store = try deployment.openExistingStore()
    defer { store.close() }
    let reader = try store.reader()
    defer { reader.close() }
    let wanted = try TrustSettings.environment(call.values)
    let unit = call.values.text(.unit)
    let asJSON = try call.values.flag(.json)
    var found = 0
    for environment in Environment.allCases where wanted == nil || wanted == environment {
      for line in try reader.ledger(environment, account) where unit == nil || line.unit.text == unit {
        found += 1
        if asJSON {
          var writer = JSONWriter()
          writer.object { json in
            json.field("environment", environment.rawValue)
            line.write(&json)
          }
          Output.bytes(writer.bytes + [0x0a])
        } else {
          Output.line(
            "\(environment.rawValue) \(line.recordedAt)  \(line.unit) \(line.amount > 0 ? "+" : "")\(line.amount)  "
              + "\(line.counterpart)  \(line.entry)  balance \(line.balance)\(line.balance < 0 ? " (debt)" : "")")
        }
      }
    }
    guard found > 0 else {
      Output.error("the ledger has no line of \(account)\(unit.map { " in \($0)" } ?? "")")
      return ExitStatus.found
    }
    return 0
  }
}
