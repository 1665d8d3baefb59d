import Foundation
import Testing

/// Catalogues through the executable, on the embedded log: checked, compared, followed by newer ones, replayed.
@Suite struct CatalogueTests {
  private let account = "7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11"

  private func catalogue(_ version: String, gives entitlement: String, more: String = "") -> String {
    #"{"version":"\#(version)","products":[{"id":"pro","type":"non-consumable","entitlements":["\#(entitlement)"]}\#(more)]}"#
  }

  /// A program with one purchase of `pro` on its log, and the root that it was signed under.
  private func program() throws -> Tool {
    let program = try Tool()
    let transaction = try program.run(
      "appstore", "sign", "--kind", "transaction", "--dir", "store",
      input: """
        {"transactionId":"1","originalTransactionId":"1","bundleId":"com.example.app","productId":"pro",
        "type":"Non-Consumable","environment":"Sandbox","purchaseDate":1764460800000,"signedDate":1764460800000,
        "appAccountToken":"\(account)"}
        """)
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
    try #require(published.status == 0, "\(published.output)")
    return program
  }

  private func work(_ program: Tool, _ file: String) throws -> Tool.Result {
    try program.run(
      "run", "--until-idle", "--anchor", "store/root.der", "--bundle-id", "com.example.app", "--environment", "Sandbox",
      "--catalogue", file)
  }

  @Test func aNewCatalogueIsComparedFollowedAndReplayed() throws {
    let program = try program()
    try program.write("first.json", catalogue("1", gives: "pro"))
    try program.write("second.json", catalogue("2", gives: "premium"))
    let first = try work(program, "first.json")
    #expect(first.status == 0, "\(first.errors)")
    #expect(try program.run("state", "--account", account).output.contains("entitlement pro"))

    let diff = try program.run("catalogue", "diff", "1", "second.json")
    #expect(diff.status == 4, "\(diff.errors)")
    #expect(diff.output.contains("product pro  changed"))
    #expect(diff.output.contains("  gains premium  without end  by pro"))
    #expect(diff.output.contains("  loses pro"))
    #expect(diff.output.contains("1 of 1 accounts"))
    let lines = try program.run("catalogue", "diff", "first.json", "second.json", "--json").lines
    #expect(lines.count == 3 && lines[1].contains(#""change":"gains""#) && lines[2].contains(#""differing":1"#))
    #expect(try program.run("catalogue", "diff", "1", "first.json").status == 0)
    let unheard = try program.run("catalogue", "diff", "1", "unheard.json")
    #expect(unheard.status == 2 && unheard.errors.contains("is no file, and no version"))

    // Nothing comes in: it is the catalogue alone that changes what the account has.
    let second = try work(program, "second.json")
    #expect(second.status == 0, "\(second.errors)")
    let state = try program.run("state", "--account", account).output
    #expect(state.contains("entitlement premium") && !state.contains("entitlement pro"))
    #expect(try program.run("explain", "--account", account).output.contains("by rule catalogue"))
    let history = try program.run("catalogue", "history").lines
    #expect(history.count == 2 && history[0].hasPrefix("1  from the beginning") && history[1].hasSuffix("in force"))
    let replay = try program.run("replay", "entitlements", "--into", "sqlite:shadow.db", "--reason", "test")
    #expect(replay.status == 0 && replay.output.contains("the same"), "\(replay.output)\(replay.errors)")

    // One that names its time is kept and waits for it.
    let later = catalogue("3", gives: "later").replacingOccurrences(
      of: #""version""#, with: #""from":"2199-01-01T00:00:00Z","version""#)
    try program.write("later.json", later)
    #expect(try work(program, "later.json").status == 0)
    #expect(try program.run("state", "--account", account).output.contains("entitlement premium"))
    let waiting = try program.run("catalogue", "history").lines
    #expect(waiting.count == 3 && waiting[1].hasSuffix("in force") && waiting[2].contains("2199-01-01T00:00:00.000Z"))

    // A version has one content, and nobody goes back by accident.
    try program.write("other.json", catalogue("2", gives: "pro"))
    let other = try work(program, "other.json")
    #expect(other.status == 2 && other.errors.contains("says something else"), "\(other.errors)")
    let back = try work(program, "first.json")
    #expect(back.status == 2 && back.errors.contains("was followed by 3"), "\(back.errors)")
    #expect(try work(program, "second.json").status == 0)
  }

  /// The stages go on running: a broken file is told and changes nothing, a good one comes into force.
  @Test(.timeLimit(.minutes(1))) func aNewFileComesIntoForceWithoutARestart() throws {
    let program = try program()
    try program.write("catalogue.json", catalogue("1", gives: "pro"))
    let log = program.folder.appendingPathComponent("said")
    try Data().write(to: log)
    let process = try program.process(
      ["run", "--listen", "127.0.0.1:0", "--anchor", "store/root.der"] + Tool.stageOptions,
      output: FileHandle.nullDevice, errors: FileHandle(forWritingTo: log))
    try process.run()
    defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
    func has(_ entitlement: String) throws -> Bool {
      let state = try program.run("state", "--account", account)
      return state.output.contains("entitlement \(entitlement)")
    }
    func goesOn() throws {
      let text = try String(contentsOf: log, encoding: .utf8)
      try #require(process.isRunning, "it ended: \(text)")
      usleep(50_000)
    }
    while try !has("pro") { try goesOn() }
    // Not a catalogue, then one that contradicts the version that is kept: both are told.
    try program.write("catalogue.json", #"{"version":"2","products":[{"id":"pro"}]}"#)
    while try !String(contentsOf: log, encoding: .utf8).contains("product pro: type: is missing") {
      try goesOn()
    }
    try program.write("catalogue.json", catalogue("1", gives: "other"))
    while try !String(contentsOf: log, encoding: .utf8).contains("says something else") {
      try goesOn()
    }
    #expect(try has("pro"))
    try program.write("catalogue.json", catalogue("2", gives: "premium"))
    while try !has("premium") { try goesOn() }
    #expect(try !has("pro"))
    process.terminate()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }

  /// The log alone says which catalogue decides from when: a store that is lost is made again by the same ones.
  @Test func aLostStoreIsReplayedByTheCataloguesOfTheLog() throws {
    let program = try program()
    try program.write("first.json", catalogue("1", gives: "pro"))
    try program.write("second.json", catalogue("2", gives: "premium"))
    #expect(try work(program, "first.json").status == 0)
    #expect(try work(program, "second.json").status == 0)
    let published = try program.run("tail", "catalogue").lines
    #expect(published.count == 2 && published.allSatisfy { $0.contains("catalogue.published.v1") }, "\(published)")
    let at = ["--at", "2030-01-01T00:00:00Z"]
    let stood = try program.run(["replay", "entitlements", "--into", "sqlite:a.db", "--json"] + at)
    #expect(stood.status == 0 && stood.output.contains(#""same":true"#), "\(stood.errors)")
    let digest = try #require(stood.output.firstMatch(of: #/"digest":"([0-9a-f]{64})"/#)).1
    for end in ["", "-wal", "-shm"] {
      try? FileManager.default.removeItem(at: program.folder.appendingPathComponent("purchases.db\(end)"))
    }
    let lost = try program.run(["replay", "entitlements", "--into", "sqlite:b.db", "--json"] + at)
    #expect(lost.status == 6 && !lost.output.contains("liveDigest"), "\(lost.output)\(lost.errors)")
    #expect(lost.output.contains(#""digest":"\#(digest)""#), "\(stood.output)\(lost.output)")
    // The audit log covers catalogues.
    let audit = try program.run("audit", "verify")
    #expect(audit.output.contains("catalogue"), "\(audit.output)\(audit.errors)")
  }

  /// No service is told of a file: one command puts a catalogue into force for all that run.
  @Test(.timeLimit(.minutes(1))) func aPublishedCatalogueComesIntoForceWithoutAFile() throws {
    let program = try program()
    let options = [
      "--anchor", "store/root.der", "--bundle-id", "com.example.app", "--environment", "Sandbox",
    ]
    let none = try program.run(["run", "--until-idle"] + options)
    #expect(none.status == 2 && none.errors.contains("catalogue publish"), "\(none.status) \(none.errors)")
    try program.write("catalogue.json", catalogue("1", gives: "pro"))
    let first = try program.run("catalogue", "publish", "catalogue.json")
    #expect(first.status == 0 && first.output.hasPrefix("version 1, 1 products, is in force from"), "\(first.errors)")
    let again = try program.run("catalogue", "publish", "catalogue.json")
    #expect(again.status == 0 && again.output.contains("was published before"), "\(again.errors)")
    let log = program.folder.appendingPathComponent("said")
    try Data().write(to: log)
    let process = try program.process(
      ["run", "--listen", "127.0.0.1:0"] + options, output: FileHandle.nullDevice,
      errors: FileHandle(forWritingTo: log))
    try process.run()
    defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
    func has(_ entitlement: String) throws -> Bool {
      let text = try String(contentsOf: log, encoding: .utf8)
      try #require(process.isRunning, "it ended: \(text)")
      return try program.run("state", "--account", account).output.contains("entitlement \(entitlement)")
    }
    while try !has("pro") { usleep(50_000) }
    try program.write("catalogue.json", catalogue("1", gives: "other"))
    let contradicts = try program.run("catalogue", "publish", "catalogue.json")
    #expect(contradicts.status == 2 && contradicts.errors.contains("says something else"), "\(contradicts.errors)")
    try program.write("catalogue.json", catalogue("2", gives: "premium"))
    #expect(try program.run("catalogue", "publish", "catalogue.json").status == 0)
    while try !has("premium") { usleep(50_000) }
    // Started again with a file that was followed: it goes by what is in force, and says so.
    try program.write("old.json", catalogue("1", gives: "pro"))
    let told = program.folder.appendingPathComponent("told")
    try Data().write(to: told)
    let second = try program.process(
      ["run", "--listen", "127.0.0.1:0", "--catalogue", "old.json", "--instance", "second"] + options,
      output: FileHandle.nullDevice, errors: FileHandle(forWritingTo: told))
    try second.run()
    defer { if second.isRunning { kill(second.processIdentifier, SIGKILL) } }
    while try !String(contentsOf: told, encoding: .utf8).contains("\"message\":\"listening\"") {
      let text = try String(contentsOf: told, encoding: .utf8)
      try #require(second.isRunning, "it ended: \(text)")
      usleep(20_000)
    }
    #expect(try String(contentsOf: told, encoding: .utf8).contains("was followed by 2"))
    second.terminate()
    second.waitUntilExit()
    #expect(second.terminationStatus == 0)
    process.terminate()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }

  @Test func productsAndMistakesAreNamed() throws {
    let program = try Tool()
    let sale = #","sellable":{"until":"2020-01-01T00:00:00Z"}"#
    let old = #",{"id":"old","type":"non-consumable","entitlements":["pro"]\#(sale)}"#
    try program.write("catalogue.json", catalogue("1", gives: "pro", more: old))
    let answer = try program.run("products", "pro", "old", "nothing", "--catalogue", "catalogue.json")
    #expect(answer.status == 4, "\(answer.errors)")
    #expect(answer.output.contains("pro  non-consumable, gives pro"))
    #expect(answer.output.contains("old  can't be bought: no-longer"))
    #expect(answer.output.contains("nothing  can't be bought: unknown"))
    let past = try program.run(
      "products", "old", "--catalogue", "catalogue.json", "--at", "2019-12-31T23:59:59Z", "--json")
    #expect(past.status == 0 && past.output.contains(#""invalidProductIdentifiers":[]"#))
    #expect(try program.run("products", "--catalogue", "catalogue.json").status == 0)
    let noStore = try program.run("products", "pro")
    #expect(noStore.status == 2 && noStore.errors.contains("there is no such file"))

    let checked = try program.run("catalogue", "check", "catalogue.json")
    #expect(checked.status == 0 && checked.output == "version 1, 2 products\n")
    try program.write("broken.json", "{\"version\":\"1\",\n\"products\":[\n{\"id\":\"pro\",\n\"type\":\"gift\"}]}")
    let broken = try program.run("catalogue", "check", "broken.json")
    #expect(broken.status == 2 && broken.errors.contains("broken.json: line 4: product pro: type: must be"))
    let compared = try program.run("catalogue", "diff", "catalogue.json", "catalogue.json")
    #expect(compared.status == 0 && compared.output.contains("no store"), "\(compared.errors)")
  }
}
