import Foundation
import Testing

@Suite struct CommandTests {
  @Test func helpNamesEveryCommandAndEachExplainsItself() throws {
    let program = try Tool()
    let overview = try program.run("--help")
    #expect(overview.status == 0)
    for words in [
      ["run"], ["gateway"], ["stage"], ["publish"], ["tail"], ["verify"], ["state"], ["explain"], ["replay"],
      ["audit", "verify"], ["audit", "prove"], ["audit", "check"], ["topics"], ["doctor"], ["demo"], ["appstore"],
    ] {
      #expect(overview.output.contains("  " + words.joined(separator: " ")))
      let help = words.count == 1 ? try program.run(words[0], "--help") : try program.run(words[0], words[1], "--help")
      #expect(help.status == 0)
      #expect(help.output.contains("Usage: purchases " + words.joined(separator: " ")))
      #expect(help.output.contains("Examples:"))
    }
  }

  @Test func theHelpNamesTheShortestTokenThatIsTaken() throws {
    let program = try Tool()
    #expect(try program.run("gateway", "--help").output.contains("at least 16 visible ASCII characters"))
    let short = String(repeating: "x", count: 15)
    // A port that can't be had: the token is looked at before.
    #expect(try program.run("gateway", "--listen", "192.0.2.1:1", "--token", short).status == 2)
    let taken = try program.run("gateway", "--listen", "192.0.2.1:1", "--token", short + "x")
    #expect(taken.status == 1, "the token is good, the address is not this host's: \(taken.errors)")
  }

  @Test(arguments: [
    (["nonsense"], "no command nonsense"), (["publish"], "--file"), (["publish", "--fiel", "x"], "--fiel"),
    (["tail"], "TOPIC"), (["tail", "nonsense"], "nonsense"), (["stage", "nonsense"], "nonsense"),
    (["run", "--log", "mysql://x"], "--log"), (["run", "--store", "redis:x"], "--store"),
    (["topics", "--partitions", "0"], "--partitions"), (["topics", "--prefix", "a b"], "--prefix"),
    (["run", "--bundle-id", "a", "--environment", "Sandbox"], "--catalogue"),
    (["run", "--catalogue", "catalogue.json"], "--bundle-id"),
    (["run", "--bundle-id", "a", "--catalogue", "catalogue.json"], "--app-apple-id"),
    (["run", "--bundle-id", "a", "--environment", "production", "--catalogue", "catalogue.json"], "--environment"),
    (["run", "--bundle-id", "a", "--environment", "Xcode", "--catalogue", "catalogue.json"], "local certificate"),
    (["gateway", "--listen", "0.0.0.0:0"], "--listen"), (["gateway", "--token", "short"], "--token"),
    (["verify"], "--jws"), (["state"], "--account"), (["replay", "entitlements"], "--into"),
    (["tail", "received", "--from", "yesterday"], "--from"), (["doctor", "--config", "missing.conf"], "missing.conf"),
  ])
  func wrongUsageIsNamedAndExits2(words: [String], names: String) throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    let out = program.folder.appendingPathComponent("err")
    try Data().write(to: out)
    let process = try program.process(words, output: FileHandle.nullDevice, errors: FileHandle(forWritingTo: out))
    try process.run()
    process.waitUntilExit()
    let text = try String(contentsOf: out, encoding: .utf8)
    #expect(process.terminationStatus == 2, "\(words): \(text)")
    #expect(text.contains(names), "\(words): \(text)")
    #expect(text.split(separator: "\n").count == 1, "one line says it: \(text)")
  }

  @Test func aFullDiskForTheLogFileChangesNoOutcome() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    for (words, status) in [
      (["nonsense"], Int32(2)),
      (["run", "--until-idle", "--verbose", "--listen", "127.0.0.1:0"] + Tool.stageOptions, 0),
    ] {
      let full = try FileHandle(forWritingTo: URL(fileURLWithPath: "/dev/full"))
      let process = try program.process(words, output: FileHandle.nullDevice, errors: full)
      try process.run()
      process.waitUntilExit()
      #expect(process.terminationReason == .exit, "\(words)")
      #expect(process.terminationStatus == status, "\(words)")
    }
  }

  @Test func aBrokenCatalogueNamesTheProduct() throws {
    let program = try Tool()
    try program.write("catalogue.json", #"{"version":"1","products":[{"id":"gold","type":"auto-renewable"}]}"#)
    let result = try program.run(
      "run", "--until-idle", "--bundle-id", "a", "--environment", "Sandbox", "--catalogue", "catalogue.json")
    #expect(result.status == 2)
    #expect(result.errors == "purchases: --catalogue catalogue.json: line 1: product gold: level: is missing\n")
    for (text, reason) in [("[]", "must be a JSON object"), ("{", "is not JSON (byte"), ("{}", "version: is missing")] {
      try program.write("catalogue.json", text)
      let result = try program.run(
        "run", "--until-idle", "--bundle-id", "a", "--environment", "Sandbox", "--catalogue", "catalogue.json")
      #expect(result.errors.hasPrefix("purchases: --catalogue catalogue.json: line 1: \(reason)"), "\(result.errors)")
    }
  }

  @Test func anAccountIsKnownWhereItsPurchaseWaitsAndNowhereElse() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    let payload = """
      {"transactionId":"1","originalTransactionId":"1","bundleId":"com.example.app","productId":"not.yet.known",
      "type":"Non-Consumable","environment":"Sandbox","purchaseDate":1764460800000,"signedDate":1764460800000,
      "appAccountToken":"7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11"}
      """
    let transaction = try program.run("appstore", "sign", "--kind", "transaction", "--dir", "store", input: payload)
    let notification = try program.run(
      "appstore", "sign", "--kind", "notification", "--dir", "store",
      input: """
        {"notificationType":"ONE_TIME_CHARGE","notificationUUID":"0c6f2a52-8d0f-4f0e-9a64-0d6c3b0c2f11","version":"2.0",
        "signedDate":1764460800000,"data":{"bundleId":"com.example.app","environment":"Sandbox",
        "signedTransactionInfo":"\(transaction.output.trimmingCharacters(in: .newlines))"}}
        """)
    let signed = notification.output.trimmingCharacters(in: .newlines)
    let published = try program.run(
      "publish", "--file", "-", input: "{\"type\":\"store.notified\",\"signedPayload\":\"\(signed)\"}\n")
    #expect(published.status == 0, "\(published.output)")
    let worked = try program.run(
      "run", "--until-idle", "--anchor", "store/root.der", "--bundle-id", "com.example.app", "--environment", "Sandbox",
      "--catalogue", "catalogue.json")
    #expect(worked.status == 0, "\(worked.errors)")

    let account = "7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11"
    let waiting = try program.run("state", "--account", account)
    #expect(waiting.status == 0, "\(waiting.errors)")
    #expect(waiting.output.contains("waits for product not.yet.known"))
    #expect(waiting.output.contains("  purchase "), "\(waiting.output)")
    let facts = try program.run("state", "--account", account, "--json").output
    #expect(facts.contains(#""chains":[{"originalTransactionId":"#) && facts.contains(#""productId":"not.yet.known""#))
    #expect(try program.run("state", "--account", account, "--environment", "Production").status == 4)
    #expect(try program.run("state", "--account", "nobody", "--environment", "Sandbox").status == 4)
  }

  @Test func publishReportsEachLine() throws {
    let program = try Tool()
    let input = """
      {"type":"payment.added","environment":"Sandbox","account":"a1","attemptId":"1","productId":"coins.100"}
      {"type":"payment.failed","environment":"Sandbox","account":"a1","attemptId":"1","productId":"coins.100","failure":{"domain":"SKErrorDomain","code":2,"userCancelled":true}}
      {"type":"payment.added","environment":"Sandbox","account":"a1","attemptId":"1","productId":"coins.100"}
      {"type":"payment.purchased","account":"a1"}

      garbage
      {"type":"payment.invented","environment":"Sandbox"}
      {"type":"payment.added","environment":"sandbox","account":"a1","attemptId":"2","productId":"coins.100"}
      {"type":"payment.added","environment":"Sandbox","account":"a/1","attemptId":"2","productId":"coins.100"}
      {"type":"payment.added","environment":"Sandbox","account":"a1","attemptId":"2","productId":7}
      """
    let result = try program.run("publish", "--file", "-", input: input)
    #expect(result.status == 3)
    #expect(result.lines.last == "2 accepted, 1 duplicate, 6 refused")
    for (line, field) in [
      (4, "signedTransaction"), (6, "event"), (7, "type"), (8, "environment"), (9, "account"), (10, "productId"),
    ] {
      #expect(result.output.contains("line \(line): refused: \(field): "), "\(result.output)")
    }
    #expect(result.output.contains("line 3: duplicate of line 1"))
    let tail = try program.run("tail", "received")
    #expect(tail.lines.count == 2)
    #expect(try program.run("publish", "--file", "-", input: "\n").status == 0)
  }

  /// The id of a report with a proof is the proof's; what is said beside the proof makes it a report of its own.
  @Test func aReportThatFollowsABadOneOfTheSameProofIsNoDuplicate() throws {
    let program = try Tool()
    func line(_ account: String, _ transaction: String) -> String {
      #"{"type":"payment.purchased","environment":"Sandbox","account":"\#(account)","transactionId":"\#(transaction)","productId":"p","signedTransaction":"e30.e30.AA"}"#
    }
    let input = [line("alice", "9"), line("alice", "1"), line("bob", "1"), line("alice", "1")].joined(separator: "\n")
    let result = try program.run("publish", "--file", "-", input: input)
    #expect(result.status == 0)
    #expect(result.lines == ["line 4: duplicate of line 2", "3 accepted, 1 duplicate, 0 refused"])
    #expect(try program.run("tail", "received").lines.count == 3)
    func restore(_ type: String) -> String {
      #"{"type":"restore.\#(type)","environment":"Sandbox","account":"alice","attemptId":"r1"}"#
    }
    let restores = [restore("started"), restore("completed"), restore("started")].joined(separator: "\n")
    let restored = try program.run("publish", "--file", "-", input: restores)
    #expect(restored.lines == ["line 3: duplicate of line 1", "2 accepted, 1 duplicate, 0 refused"])
  }

  @Test func aLineThatIsTooLargeIsToldTheLimit() throws {
    let program = try Tool()
    func line(_ attempt: String, _ rest: Int) -> String {
      #"{"type":"payment.added","environment":"Sandbox","account":"a1","attemptId":"\#(attempt)","productId":"p","x":"\#(String(repeating: "x", count: rest))"}"#
    }
    let result = try program.run(
      "publish", "--file", "-", input: [line("1", 1), line("2", 1_200_000), line("3", 1)].joined(separator: "\n"))
    #expect(result.status == 3)
    #expect(
      result.lines == ["line 2: refused: event: is longer than 1114112 bytes", "2 accepted, 0 duplicate, 1 refused"])
  }

  @Test func theWayOfAFailedPaymentFromFileToPermit() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    let event =
      #"{"type":"payment.failed","environment":"Sandbox","account":"a1","attemptId":"77","productId":"coins.100","failure":{"domain":"SKErrorDomain","code":2,"userCancelled":true}}"#
    try program.run("publish", "--file", "-", input: event)
    let run = try program.run(
      "run", "--until-idle", "--bundle-id", "com.example.app", "--environment", "Sandbox", "--catalogue",
      "catalogue.json")
    #expect(run.status == 0, "\(run.errors)")
    let state = try program.run("state", "--account", "a1", "--json")
    #expect(state.status == 0)
    #expect(state.output.contains(#""proof":"attempt:77""#))
    #expect(state.output.contains(#""status":"finishable""#))
    let explain = try program.run("explain", "--account", "a1")
    #expect(explain.output.contains("payment.failed  purchases.received/"))
    #expect(try program.run("explain", "--account", "nobody").status == 4)
    let verify = try program.run("audit", "verify")
    #expect(verify.status == 0, "\(verify.output)")
    #expect(verify.lines.last?.hasPrefix("the audit log holds: ") == true)
    let replay = try program.run("replay", "entitlements", "--into", "sqlite:shadow.db")
    #expect(replay.status == 0, "\(replay.output)\(replay.errors)")
    #expect(replay.output.contains("the same"))
    // The replay is itself in the log.
    #expect(try program.run("tail", "received").output.contains(#""action":"replay""#))
  }

  @Test func aProofFromTheAuditLogStandsForItself() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    try program.run(
      "publish", "--file", "-",
      input: #"{"type":"payment.added","environment":"Sandbox","account":"a1","attemptId":"1","productId":"coins.100"}"#
    )
    try program.run(
      "run", "--until-idle", "--bundle-id", "com.example.app", "--environment", "Sandbox", "--catalogue",
      "catalogue.json")
    let place = try #require(
      try program.run("topics").lines.first?.split(separator: " ").first { $0.hasSuffix(":0-1") }?.split(separator: ":")
        .first)
    let proof = try program.run("audit", "prove", "received/\(place)", "--index", "0")
    #expect(proof.status == 0, "\(proof.errors)")
    try program.write("proof", proof.output)
    #expect(try program.run("audit", "check", "--file", "proof").status == 0)
    try program.write("proof", proof.output.replacingOccurrences(of: "index 0", with: "index 1"))
    #expect(try program.run("audit", "check", "--file", "proof").status != 0)
    #expect(try program.run("audit", "export", "--to", "export").status == 0)
    #expect(try program.run("audit", "verify", "--from", "export").status == 0)
  }

  /// Not even a stage that has nothing to do goes on with a log that nobody else can see.
  @Test func aRunWhoseLogIsDeletedEndsAndSaysWhy() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    let process = try program.process(
      ["run", "--listen", "127.0.0.1:0"] + Tool.stageOptions, output: FileHandle.nullDevice, errors: Pipe())
    let errors = try #require(process.standardError as? Pipe)
    try process.run()
    defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
    var said = ""
    while !said.contains(#""message":"listening""#) {
      let data = errors.fileHandleForReading.availableData
      try #require(!data.isEmpty, "it ended before it listened: \(said)")
      said += String(decoding: data, as: UTF8.self)
    }
    // Not the outcome: it keeps a run that goes on for ever from holding up all tests.
    let identifier = process.processIdentifier
    let watchdog = DispatchWorkItem { kill(identifier, SIGKILL) }
    DispatchQueue.global().asyncAfter(deadline: .now() + 60, execute: watchdog)
    defer { watchdog.cancel() }
    try FileManager.default.removeItem(atPath: program.folder.path + "/purchases.log.db")
    // Its end closes the pipe.
    while true {
      let data = errors.fileHandleForReading.availableData
      if data.isEmpty { break }
      said += String(decoding: data, as: UTF8.self)
    }
    process.waitUntilExit()
    #expect(process.terminationReason == .exit && process.terminationStatus == 1)
    #expect(said.contains("purchases.log.db was deleted, moved or replaced while it was open"), "\(said)")
    #expect(!FileManager.default.fileExists(atPath: program.folder.path + "/purchases.log.db"))
  }

  @Test func stopsOnSIGTERMWithStatus0() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    let process = try program.process(
      ["run", "--listen", "127.0.0.1:0"] + Tool.stageOptions, output: FileHandle.nullDevice, errors: Pipe())
    let errors = try #require(process.standardError as? Pipe)
    try process.run()
    // It says when it listens; only then is there something to stop.
    var said = ""
    while !said.contains(#""message":"listening","address":"127.0.0.1:"#) {
      let data = errors.fileHandleForReading.availableData
      try #require(!data.isEmpty, "it ended before it listened: \(said)")
      said += String(decoding: data, as: UTF8.self)
    }
    process.terminate()
    process.waitUntilExit()
    #expect(process.terminationReason == .exit)
    #expect(process.terminationStatus == 0)
  }
}
