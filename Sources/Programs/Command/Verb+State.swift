import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesRunner

extension Setting {
  static let account = Setting("account", "A", "the account")
  static let entitlement = Setting("entitlement", "NAME", "only changes of this entitlement, unit of credits or proof")
  static let keptCatalogue = Setting.catalogue.explained(
    "the catalogue of products (JSON): one that the store doesn't keep counts as if it had been in force all along; "
      + "default: those that the stage has worked by, each in its time")
  static let into = Setting("into", "URL", "the store to build: sqlite:PATH or postgres://…")
  static let anyEnvironment = Setting.environment.explained(
    "only this environment: Production, Sandbox, Xcode or LocalTesting (default: every one that knows the account)")
  static let reason = Setting("reason", "TEXT", "why; it goes into the log with your name")
}

extension Verb {
  static let state = Verb(
    words: ["state"], summary: "What an account may use: entitlements, balances and permits, from the store",
    settings: [.account, .anyEnvironment, .at, .keptCatalogue, .json] + Setting.connection,
    examples: ["purchases state --account 0f4c… --at 2026-11-30T12:00:00Z --json"],
    statuses: [(1, "the store can't be read"), (ExitStatus.found, "no such account")]
  ) { call in
    let account = try account(call)
    let at = try instant(call, .at)
    let deployment = try Deployment(call.values)
    let store = try deployment.openExistingStore()
    defer { store.close() }
    let reader = try store.reader()
    defer { reader.close() }
    let views = try reader.answers(
      account, in: try TrustSettings.environment(call.values),
      try question(call, deployment, reader, at: at, withChains: true))
    let asJSON = try call.values.flag(.json)
    for view in views {
      if asJSON { Output.bytes(view.json + [0x0a]) } else { print(view) }
    }
    guard !views.isEmpty else {
      Output.error("the store knows no account \(account)")
      return ExitStatus.found
    }
    return 0
  }

  static func account(_ call: Call) throws(UsageError) -> Account {
    guard let text = call.values.text(.account) else {
      throw UsageError("purchases \(call.verb.name): needs --account A")
    }
    guard let account = Account(text) else { throw UsageError("--account: is not the name of an account") }
    return account
  }

  /// By the catalogue of the settings, if they name one, and else by those that the store keeps.
  private static func question(
    _ call: Call, _ deployment: Deployment, _ reader: any StoreReader, at instant: Instant? = nil,
    withChains: Bool = false
  ) throws -> AccountQuestion {
    AccountQuestion(
      at: instant, now: deployment.clock.now(), history: try StageFactory(call.values, deployment).history(or: reader),
      historyIsGiven: call.values.text(.catalogue) != nil, withChains: withChains)
  }

  private static func print(_ view: AccountView) {
    Output.line("account \(view.account) in \(view.environment.rawValue), at \(view.at), version \(view.version)")
    if let position = view.position {
      Output.line("  all before \(position), by catalogue \(view.catalogueVersion ?? "none")")
    }
    for (entitlement, state) in view.entitlements {
      let end = state.endsAt.map { "until \($0)" } ?? "without end"
      Output.line("  entitlement \(entitlement)  \(end)\(state.product.map { "  by \($0)" } ?? "")")
    }
    if view.entitlements.isEmpty { Output.line("  no entitlement") }
    for balance in view.balances {
      Output.line("  balance \(balance.unit)  \(balance.amount)\(balance.debt > 0 ? "  (debt)" : "")")
    }
    for row in view.permits {
      Output.line(
        "  permit \(row.permit.status.rawValue)  \(row.permit.content.rawValue)  \(row.permit.reason)  \(row.permit.proof)"
      )
    }
    if !view.permitsAreComplete { Output.line("  and more permits than are listed here") }
    for chain in view.chains ?? [] { print(chain) }
    for product in view.waitingFor { Output.line("  waits for product \(product), which the catalogue does not know") }
  }

  static let explain = Verb(
    words: ["explain"], summary: "What an account may use, and the chain of events behind it",
    settings: [.account, .anyEnvironment, .entitlement, .json] + Setting.connection,
    examples: ["purchases explain --account 0f4c… --entitlement pro"],
    statuses: [(1, "log or store can't be read"), (ExitStatus.found, "there is nothing to explain")]
  ) { call in
    let account = try account(call)
    let deployment = try Deployment(call.values)
    let store = try deployment.openExistingStore()
    defer { store.close() }
    let reader = try store.reader()
    defer { reader.close() }
    let log = try deployment.openLog()
    defer { log.close() }
    let records = try log.reader()
    defer { records.close() }
    let explanation = Explanation(store: reader, log: records)
    let question = try question(call, deployment, reader)
    let wanted = try TrustSettings.environment(call.values)
    let asJSON = try call.values.flag(.json)
    let subject = call.values.text(.entitlement)
    var found = 0
    for environment in Environment.allCases where wanted == nil || wanted == environment {
      guard
        let known = try explanation.account(environment, account, subject: subject, question)
      else { continue }
      found += subject == nil ? 1 : known.changes.count
      if asJSON { Output.bytes(known.view.json + [0x0a]) } else { print(known.view) }
      for change in known.changes {
        if asJSON { Output.bytes(json(change, environment)) } else { print(change, environment) }
      }
    }
    guard found > 0 else {
      Output.error("nothing was written about \(account)")
      return ExitStatus.found
    }
    return 0
  }

  private static func print(_ change: Explanation.Change, _ environment: Environment) {
    var line = "\(environment.rawValue) \(change.version)  \(change.at)  \(change.type)  \(change.subject)"
    line += "  by rule \(change.rule)"
    if let order = change.order {
      line += "  ordered by \(order.author ?? "nobody") as \(order.id ?? "nothing"): \(order.reason ?? "no reason")"
    }
    Output.line(line)
    for step in change.steps {
      var facts: [String] = []
      for name in [
        "fact", "kind", "action", "operator", "orderId", "reason", "until", "basis", "account", "productId",
        "transactionId", "originalTransactionId", "proof",
      ] {
        if let text = step.data[name]?.string { facts.append("\(name) \(text)") }
      }
      if let notification = step.data["notification"]?["notificationType"]?.string {
        facts.append("notification \(notification)")
      }
      Output.line("    \(step.type)  \(step.coordinates)  \(step.at)  \(facts.joined(separator: ", "))")
    }
  }

  private static func json(_ change: Explanation.Change, _ environment: Environment) -> [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
      json.field("environment", environment.rawValue)
      json.field("account", change.account)
      json.field("version", change.version)
      json.field("type", change.type)
      json.field("subject", change.subject)
      json.field("rule", change.rule)
      json.field("at", change.at.rfc3339)
      if let order = change.order {
        json.field("orderId", order.id)
        json.field("operator", order.author)
        json.field("reason", order.reason)
      }
      json.field(
        "events",
        array: { json in
          for step in change.steps {
            json.object { json in
              json.field("coordinates", step.coordinates.description)
              json.field("type", step.type)
              json.field("id", step.id)
              json.field("at", step.at.rfc3339)
              json.field("data", step.data)
            }
          }
        })
    }
    return writer.bytes + [0x0a]
  }

  static let replay = Verb(
    words: ["replay"], summary: "Run a stage again from the recorded input into another store; nothing live is touched",
    arguments: ["STAGE"],
    settings: [
      .into, .at.explained("compare the states at this time (RFC 3339; default now)"), .reason, .keptCatalogue,
      .environment,
      .restorePolicy, .restoreDamping, .json,
    ] + Setting.connection,
    examples: [
      "purchases replay entitlements --into sqlite:shadow.db --catalogue catalogue.json --reason 'check of the backup'"
    ],
    statuses: [
      (1, "the replay could not go on"), (ExitStatus.found, "the replayed state is not the live store's"),
      (5, "stopped; the same command goes on"), (6, "replayed; there is no live store to compare with"),
    ]
  ) { call in
    let stop = StopSignal()
    Signals.stop(stop)
    guard let name = StageName(rawValue: call.arguments[0]), name == .entitlements || name == .ownership else {
      throw UsageError("purchases replay: STAGE must be entitlements or ownership, and not \(call.arguments[0])")
    }
    guard let target = call.values.text(.into) else { throw UsageError("purchases replay: needs --into URL") }
    let deployment = try Deployment(call.values)
    let address = try StoreAddress(target, setting: .into)
    guard address != deployment.store else { throw UsageError("--into: is the live store") }
    return try run(call, name, deployment, address, stop)
  }

  private static func run(
    _ call: Call, _ name: StageName, _ deployment: Deployment, _ address: StoreAddress, _ stop: StopSignal
  ) throws -> Int32 {
    // A store that is lost is what a replay is for, too: then there is nothing to compare with.
    let live = deployment.hasStore ? try deployment.openExistingStore() : nil
    defer { live?.close() }
    let liveReader = try live?.reader()
    defer { liveReader?.close() }
    let factory = StageFactory(call.values, deployment)
    let log = try deployment.openLog()
    defer { log.close() }
    let history = try factory.history(or: liveReader, CatalogueLog(log, deployment))
    let stage: any Stage = name == .entitlements ? factory.entitlements(history) : try factory.stage(name)
    let shadow = try Deployment.open(address)
    defer { shadow.close() }
    let place: String
    switch address {
    case .sqlite(let path): place = "sqlite:\(path)"
    case .postgres: place = "postgres"
    }
    try Replay.record(
      "replay", [name.rawValue, place], reason: call.values.text(.reason) ?? "none given", deployment: deployment,
      log: log)
    let outcome = try Replay(deployment, stage: stage).run(from: log, into: shadow, until: stop) { done, total in
      Output.progress("replay \(name.rawValue): \(done) of \(total) offsets")
    }
    Output.endProgress()
    guard outcome.isComplete else {
      Output.error("stopped after \(outcome.records) offsets; the same command goes on from there")
      return 5
    }
    let rate = Int64(Double(outcome.records) / max(outcome.seconds, 0.001))
    guard name == .entitlements else {
      Output.line("replayed \(outcome.records) offsets, \(outcome.outputs) outputs, \(rate) a second")
      return 0
    }
    let at = try instant(call, .at) ?? deployment.clock.now()
    let shadowReader = try shadow.reader()
    defer { shadowReader.close() }
    let replayed = try StateReading(shadowReader, history: history).digest(at: at)
    let stands = try liveReader.map { try StateReading($0, history: history).digest(at: at) }
    if try call.values.flag(.json) {
      var writer = JSONWriter()
      writer.object { json in
        json.field("offsets", outcome.records)
        json.field("outputs", outcome.outputs)
        json.field("at", at.rfc3339)
        json.field("digest", replayed.hex)
        json.field("liveDigest", stands?.hex)
        json.field("same", stands.map { replayed == $0 })
      }
      Output.bytes(writer.bytes + [0x0a])
    } else {
      Output.line("replayed \(outcome.records) offsets, \(outcome.outputs) outputs, \(rate) a second")
      let compared =
        stands.map { "live \($0.hex): \(replayed == $0 ? "the same" : "NOT the same")" }
        ?? "there is no live store to compare it with"
      Output.line("state at \(at): replayed \(replayed.hex), \(compared)")
    }
    guard let stands else { return 6 }
    return replayed == stands ? 0 : ExitStatus.found
  }
}
