import Foundation
import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog
import PurchasesHTTPServer
import PurchasesJSON
import PurchasesLocalAppStore
import PurchasesRunner
import Testing

/// `purchases apple` as a process, against Apple's servers played over TLS.
@Suite(.timeLimit(.minutes(2)))
struct AppleTests {
  let tool: Tool
  let books: AppleBooks
  let servers: AppleServers
  let clock = SystemClock()

  init() throws {
    tool = try Tool()
    let authority = LocalAuthority(seed: 22)
    let files = try authority.keepServerFiles(in: tool.folder.path)
    books = AppleBooks(authority)
    let http = HTTPServer.Settings(tls: .init(certificatePath: files.certificate, keyPath: files.key))
    servers = try AppleServers(books, settings: .init(production: http, sandbox: http), clock: clock)
    try Data(authority.root.der).write(to: tool.folder.appendingPathComponent("root.der"))
    tool.environment = [
      "PURCHASES_LOG": "sqlite:log.db", "PURCHASES_STORE": "sqlite:store.db", "PURCHASES_BUNDLE_ID": "com.example.app",
      "PURCHASES_API_KEY": "AuthKey_\(APICredentials.keyID).p8", "PURCHASES_API_KEY_ID": APICredentials.keyID,
      "PURCHASES_API_ISSUER_ID": APICredentials.issuerID, "PURCHASES_APPLE_CA": "tls.pem",
      "PURCHASES_API_HOST": "https://127.0.0.1:\(servers.port(.production))",
      "PURCHASES_API_SANDBOX_HOST": "https://127.0.0.1:\(servers.port(.sandbox))",
      "PURCHASES_ENVIRONMENT": "Sandbox",
    ]
  }

  private func sell(_ id: String, extra: String = "") throws -> String {
    let now = clock.now().milliseconds
    return try books.sell(
      Array(
        (#"{"transactionId":"\#(id)","originalTransactionId":"\#(id)","bundleId":"com.example.app","productId":"coins.100","#
          + #""type":"Consumable","quantity":1,"purchaseDate":\#(now - 1000),"signedDate":\#(now - 1000),"#
          + #""environment":"Sandbox","appTransactionId":"7001","#
          + #""appAccountToken":"7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11"\#(extra)}"#).utf8), order: "MQ\(id)")
  }

  /// What people did, as it stands on the log.
  private func acts() throws -> [OperatorActed] {
    let log = try EmbeddedLog(path: tool.folder.appendingPathComponent("log.db").path)
    defer { log.close() }
    var all: [(at: Instant, event: OperatorActed)] = []
    try TopicTail(log: log, topic: TopicSettings().name(.received)).run(
      from: nil, follow: false, limit: nil, until: StopSignal()
    ) { stored in
      let envelope = try Envelope(reading: stored.record)
      let event = try ReceivedEvent(type: envelope.type, data: stored.record.value ?? [])
      if case .operatorActed(let act) = event { all.append((stored.record.timestamp, act)) }
    }
    return all.sorted { $0.at < $1.at }.map(\.event)
  }

  private let person = ["--operator", "kim", "--reason", "ticket 17"]

  @Test func whatAppleSignedIsPrinted() throws {
    let signed = try (1...25).map { try sell(String($0)) }
    #expect(try tool.run("apple", "get", "transaction", "7").lines == [signed[6]])
    #expect(try tool.run("apple", "get", "history", "7").lines == signed)
    #expect(try tool.run("apple", "get", "refunds", "7").lines == [])
    #expect(try tool.run("apple", "get", "order", "MQ3").lines == [signed[2]])
    let unknown = try tool.run("apple", "get", "transaction", "99")
    #expect(unknown.status == 1)
    #expect(unknown.errors.contains("4040010 TransactionIdNotFound"))
    #expect(try tool.run("apple", "get", "nothing", "1").status == 2)
  }

  @Test func whatIsSentStandsOnTheLogFirst() throws {
    let now = clock.now().milliseconds
    _ = try sell("1", extra: #","expiresDate":\#(now + 3_600_000)"#)
    let consumption = try tool.run(
      [
        "apple", "consumption", "--transaction", "1", "--consent", "crm/4711", "--delivery", "DELIVERED", "--consumed",
        "25000",
      ]
        + person)
    #expect(consumption.status == 0, "\(consumption.errors)")
    let token = ["--account-token", "7F9C24E5-1C7A-4F0E-9A64-0D6C3B0C2F11"]
    #expect(try tool.run(["apple", "account-token", "--transaction", "1"] + token + person).status == 0)
    #expect(try tool.run(["apple", "extend", "--transaction", "1", "--days", "3"] + person).status == 0)
    #expect(try tool.run(["apple", "test"] + person).status == 0)
    #expect(books.told(.sandbox).map(\.call) == ["consumption", "appAccountToken", "extend"])
    let acts = try acts()
    #expect(
      acts.map(\.action) == [
        "appstore.consumption", "appstore.consumption.accepted", "appstore.account-token",
        "appstore.account-token.accepted", "appstore.extend", "appstore.extend.accepted", "appstore.test",
        "appstore.test.accepted",
      ])
    #expect(acts.allSatisfy { $0.operatorName == "kim" && $0.reason == "ticket 17" })
    #expect(
      acts[0].arguments == [
        "environment=Sandbox", "transactionId=1", "consent=crm/4711", "deliveryStatus=DELIVERED",
        "sampleContentProvided=false", "consumptionPercentage=25000",
      ])
    #expect(acts[1].arguments == ["order=\(acts[0].actID)"])
  }

  @Test func whatAppleRefusesStandsOnTheLogToo() throws {
    let refused = try tool.run(
      ["apple", "account-token", "--transaction", "5", "--account-token", UUID().uuidString] + person)
    #expect(refused.status == 1)
    let acts = try acts()
    #expect(acts.map(\.action) == ["appstore.account-token", "appstore.account-token.failed"])
    #expect(acts[1].arguments[1].contains("4040010"))
  }

  @Test func withoutALogOrANameOrAConsentNothingIsSent() throws {
    _ = try sell("1")
    let consumption = ["apple", "consumption", "--transaction", "1", "--delivery", "DELIVERED"]
    for (words, mention) in [
      (consumption + person, "--consent"), (consumption + ["--consent", "c"], "--operator"),
      (consumption + ["--consent", "c", "--operator", "kim"], "--reason"),
    ] {
      let result = try tool.run(words)
      #expect(result.status == 2)
      #expect(result.errors.contains(mention), "\(result.errors)")
    }
    tool.environment["PURCHASES_LOG"] = "sqlite:no/such/folder/log.db"
    #expect(try tool.run(consumption + ["--consent", "c"] + person).status != 0)
    #expect(books.told(.sandbox).isEmpty)
  }

  @Test func finishingNeedsThePipelinesPermit() throws {
    let signed = try sell("31")
    try tool.write("catalogue.json", Tool.catalogue)
    let options = Tool.stageOptions + ["--anchor", "root.der", "--until-idle", "--listen", "127.0.0.1:0"]
    #expect(try tool.run(["run"] + options).status == 0)
    let early = try tool.run(["apple", "finish", "--transaction", "31"] + person)
    #expect(early.status == 3, "\(early.errors)")
    let line =
      #"{"type":"payment.purchased","environment":"Sandbox","account":"7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11","#
      + #""transactionId":"31","productId":"coins.100","signedTransaction":"\#(signed)"}"#
    #expect(try tool.run("publish", "--file", "-", input: line).status == 0)
    #expect(try tool.run(["run"] + options).status == 0)
    #expect(books.told(.sandbox).isEmpty)
    let finished = try tool.run(["apple", "finish", "--transaction", "31"] + person)
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(books.told(.sandbox).map(\.call) == ["finish"])
    let act = try #require(try acts().first { $0.action == "appstore.finish" })
    #expect(act.arguments.last?.hasPrefix("permit=") == true)
    // Another environment's permit is none.
    tool.environment["PURCHASES_ENVIRONMENT"] = "Production"
    #expect(try tool.run(["apple", "finish", "--transaction", "31"] + person).status == 3)
  }

  @Test func theOldestReceiptsAreJudgedByTheStore() throws {
    let authority = books.authority
    func legacy(_ id: String, _ authority: LocalAuthority) -> String {
      let names = [
        ("transaction-id", id), ("original-transaction-id", id), ("product-id", "pro"), ("quantity", "1"),
        ("bid", "com.example.app"), ("purchase-date-ms", "1375340400000"),
      ]
      return LegacyReceipt(fields: names.map { (name: $0.0, value: $0.1) }, isSandbox: true).encoded(authority)
    }
    func line(_ id: String, _ receipt: String) -> String {
      #"{"type":"payment.restored","environment":"Sandbox","account":"a1","transactionId":"\#(id)","productId":"pro","#
        + #""appReceipt":"\#(receipt)"}"#
    }
    tool.environment["PURCHASES_RECEIPT_HOST"] = "https://127.0.0.1:\(servers.port(.production))"
    tool.environment["PURCHASES_RECEIPT_SANDBOX_HOST"] = "https://127.0.0.1:\(servers.port(.sandbox))"
    tool.environment["PURCHASES_SHARED_SECRET"] = "canary-secret"
    try tool.write("catalogue.json", Tool.catalogue)
    let lines = [line("41", legacy("41", authority)), line("42", legacy("42", LocalAuthority(seed: 99)))]
    #expect(try tool.run("publish", "--file", "-", input: lines.joined(separator: "\n")).status == 0)
    let options = Tool.stageOptions + ["--anchor", "root.der", "--until-idle", "--listen", "127.0.0.1:0"]
    let run = try tool.run(["run"] + options)
    #expect(run.status == 0, "\(run.errors)")
    let verified = try tool.run("tail", "verified")
    #expect(verified.output.contains("receipt-not-authentic"))
    #expect(verified.lines.count { $0.contains("purchase.verified") } == 1)
    #expect(verified.output.contains("verifyReceipt"))
    for text in [run.errors, run.output, verified.output] { #expect(!text.contains("canary")) }
  }
}
