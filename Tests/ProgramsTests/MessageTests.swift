import Foundation
import PurchasesAssembly
import PurchasesContracts
import PurchasesJSON
import PurchasesRunner
import PurchasesTestKit
import Testing

/// What the program says when something is not as it should be: which file, which setting, and why.
@Suite struct MessageTests {
  @Test func aDatabaseThatIsNoneIsNamedWithWhatItWasToBe() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    try program.write("junk.db", String(repeating: "this is text, and no database\n", count: 40))
    let run = ["run", "--until-idle"] + Tool.stageOptions
    for (words, place) in [
      (run + ["--store", "sqlite:junk.db"], "the store junk.db"),
      (run + ["--log", "sqlite:junk.db"], "the log junk.db"),
      (["state", "--account", "a", "--store", "sqlite:junk.db"], "the store junk.db"),
      (["topics", "--log", "sqlite:nowhere/log.db"], "the log nowhere/log.db"),
    ] {
      let (status, _, errors) = try finish(program, words)
      #expect(status == 1)
      #expect(errors.contains(": \(place): SQLite "), "\(words): \(errors)")
      #expect(errors.split(separator: "\n").count == 1, "\(errors)")
    }
  }

  /// A file may not become larger than this: to the program, the disk is full.
  @Test func aStoreThatCantGrowIsNamed() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    #expect(try finish(program, ["topics"]).status == 0)
    let (status, _, errors) = try finish(
      program, ["run", "--until-idle", "--store", "sqlite:store.db"] + Tool.stageOptions, blocks: 100)
    #expect(status == 1)
    #expect(errors.hasPrefix("purchases: unavailable: the store store.db: SQLite "), "\(errors)")
  }

  @Test func aFileThatCantBeReadIsToldWithTheSystemsReason() throws {
    let program = try Tool()
    try program.write("proof.jws", "x")
    for (words, text) in [
      (["verify", "--jws", "/tmp"], "--jws /tmp: can't be read: Is a directory"),
      (["verify", "--jws", "nope"], "--jws nope: can't be read: No such file or directory"),
      (
        ["verify", "--jws", "proof.jws", "--anchor", "nope"], "--anchor nope: can't be read: No such file or directory"
      ),
      (["publish", "--file", "nope"], "--file nope: can't be read: No such file or directory"),
      (["doctor", "--config", "nope"], "--config nope: can't be read: No such file or directory"),
    ] {
      let (status, _, errors) = try finish(program, words)
      #expect(status == 2)
      #expect(errors == "purchases: \(text)\n")
    }
    let missing = try program.run("audit", "verify", "--from", "nope")
    #expect(
      missing.status == 1 && missing.errors == "purchases: --from nope: can't be read: No such file or directory\n")
  }

  @Test func anExportIntoAFolderWithSomethingInItNamesFlagAndFolder() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    #expect(try finish(program, ["run", "--until-idle"] + Tool.stageOptions).status == 0)
    #expect(try program.run("audit", "export", "--to", "exp").status == 0)
    let again = try program.run("audit", "export", "--to", "exp")
    #expect(again.status == 2)
    #expect(again.errors == "purchases: --to exp: the folder is not empty\n")
  }

  @Test(arguments: ["a day", "P0D", "P1H"])
  func aDampingThatIsNoDurationIsRefused(_ text: String) throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    let (status, _, errors) = try finish(
      program, ["run", "--until-idle", "--restore-damping", text] + Tool.stageOptions)
    #expect(status == 2)
    #expect(
      errors == "purchases: --restore-damping: must be an ISO 8601 duration as P1D or PT12H, or 0 for none\n",
      "\(errors)")
  }

  @Test func aTopicThatIsNoneIsToldTheOnesThatAre() throws {
    let result = try Tool().run("tail", "nope")
    #expect(result.status == 2)
    #expect(result.errors.hasPrefix("purchases tail: TOPIC must be one of received, verified, "), "\(result.errors)")
    #expect(result.errors.hasSuffix(", and not nope\n"))
  }

  @Test func linesThatALogDidNotTakeAreCountedAndNotToldAsDuplicates() {
    func line(_ attempt: Int) -> String {
      #"{"type":"payment.added","environment":"Sandbox","account":"a","attemptId":"\#(attempt)","productId":"p"}"#
    }
    let producer = InMemoryProducer()
    producer.set(.failing(LogFailure(.unavailable, "the disk is full")))
    let publication = Publication(producer: producer, topics: TopicSettings(), clock: SystemClock())
    // One window and more: what comes after the failure is not looked at any more.
    let lines = (0..<600).map(line) + ["", line(0), line(1)]
    let outcome = publication.publish(Array(([line(0)] + lines).joined(separator: "\n").utf8))
    #expect(outcome.failure?.line == 1)
    #expect(outcome.accepted == 0 && outcome.duplicates.isEmpty && outcome.refused.isEmpty)
    #expect(outcome.notOnLog == 603, "every line that holds something")
    producer.set(.accepting)
    let second = publication.publish(Array(lines.joined(separator: "\n").utf8))
    #expect(second.accepted == 600 && second.duplicates.count == 2 && second.notOnLog == 0)
  }

  @Test func theHelpOfACommandSaysWhatItsOwnSettingsDo() throws {
    let program = try Tool()
    let play = try program.run("appstore", "--help").output
    for text in [
      "scenario-root.der", "scenario-catalogue.json", "where the local App Store listens (default 127.0.0.1:8090",
      "how many users take part (default 200)", "--bundle-id com.example.harbour --app-apple-id 1600000001",
    ] {
      #expect(play.contains(text), "\(text)")
    }
    #expect(!play.contains("gateway listens") && !play.contains("3000"))
    let sign = try program.run("appstore", "sign", "--help").output
    #expect(!sign.contains("verified") && sign.contains("transaction, renewal-info, notification, app-transaction"))
    let verify = try program.run("verify", "--help").output
    #expect(verify.contains("(default: Production and Sandbox)") && !verify.contains("deployment"))
    let state = try program.run("state", "--help").output
    #expect(!state.contains("(default Production)"))
  }

  /// What the help of `verify` says of its default, and the verdict that names what was not accepted.
  @Test func verifyTakesWhatItsHelpSaysAndClaimsNoCheckThatWasNone() throws {
    let program = try Tool()
    func sign(_ kind: String, _ payload: String) throws -> String {
      try program.run("appstore", "sign", "--kind", kind, "--dir", "store", input: payload).output
    }
    func verdict(_ file: String, _ options: String...) throws -> JSONView {
      let words = ["verify", "--jws", file, "--anchor", "store/root.der", "--bundle-id", "com.example.app"] + options
      return try JSONDocument(parsing: Array(try finish(program, words).output.utf8)).root
    }
    try program.write(
      "renewal.jws",
      try sign(
        "renewal-info",
        #"{"environment":"Sandbox","originalTransactionId":"1","autoRenewProductId":"p","productId":"p","autoRenewStatus":1,"signedDate":1764460800000}"#
      ))
    let renewal = try verdict("renewal.jws")
    #expect(renewal["verdict"]?.string == "verified", "\(renewal.text)")
    #expect(renewal["bundleIdChecked"]?.bool == false, "renewal info carries no bundle id")
    try program.write(
      "test.jws",
      try sign(
        "notification",
        #"{"notificationType":"TEST","notificationUUID":"0c6f2a52-8d0f-4f0e-9a64-0d6c3b0c2f11","version":"2.0","signedDate":1764460800000,"data":{"bundleId":"com.example.app","environment":"Sandbox"}}"#
      ))
    let test = try verdict("test.jws")
    #expect(test["verdict"]?.string == "verified" && test["bundleIdChecked"]?.bool == true)
    let production = try verdict("test.jws", "--environment", "Production")
    #expect(production["reason"]?.string == "environment-not-accepted")
    #expect(production["field"]?.string == "data.environment")
  }

  @Test func aDemoLeavesAStoreAndALogInUseAloneAndSaysWhereTheSettingComesFrom() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    try program.run(
      "publish", "--file", "-",
      input: #"{"type":"payment.added","environment":"Sandbox","account":"a1","attemptId":"1","productId":"coins.100"}"#
    )
    #expect(try finish(program, ["run", "--until-idle"] + Tool.stageOptions).status == 0)
    let before = try program.run("tail", "received").output
    program.environment["PURCHASES_STORE"] = "sqlite:purchases.db"
    let store = try program.run("demo", "--accounts", "2")
    #expect(store.status == 2)
    #expect(store.errors.hasPrefix("purchases: PURCHASES_STORE (in the environment): this store is in use"))
    program.environment = [:]
    let log = try program.run("demo", "--accounts", "2", "--log", "sqlite:purchases.log.db")
    #expect(log.status == 2)
    #expect(log.errors.hasPrefix("purchases: --log: this log holds records"))
    #expect(try program.run("tail", "received").output == before)
    #expect(try program.run("audit", "verify").status == 0)
  }

  @Test func aDemoCountsWhatItExpectsInItsReportAndNotOnTheTerminal() throws {
    // Of these users some buy what the catalogue does not know.
    let demo = try Tool().run("demo", "--accounts", "150", "--seed", "3")
    #expect(demo.status == 0, "\(demo.errors)")
    #expect(demo.errors.isEmpty, "\(demo.errors)")
    #expect(demo.lines.first?.hasPrefix("A day of 150 users, seed 3; at its end the store knows ") == true)
    #expect(demo.output.contains("entitlements: product com.example.harbour.beta is not in the catalogue"))
  }

  /// - Parameter blocks: how large a file may become, in KiB.
  private func finish(
    _ program: Tool, _ words: [String], blocks: Int? = nil
  ) throws -> (status: Int32, output: String, errors: String) {
    let (out, err) = (program.folder.appendingPathComponent("out"), program.folder.appendingPathComponent("err"))
    for file in [out, err] { try Data().write(to: file) }
    let process = try program.process(
      words, output: FileHandle(forWritingTo: out), errors: FileHandle(forWritingTo: err))
    if let blocks {
      process.executableURL = URL(fileURLWithPath: "/bin/bash")
      process.arguments =
        ["-c", "trap '' XFSZ; ulimit -f \(blocks); exec \"$0\" \"$@\"", Tool.executable.path] + words
    }
    try process.run()
    process.waitUntilExit()
    return (
      process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
      try String(contentsOf: out, encoding: .utf8), try String(contentsOf: err, encoding: .utf8)
    )
  }
}
