import Foundation
import PurchasesCryptography
import PurchasesHTTPClient
import PurchasesJSON
import PurchasesLocalAppStore
import PurchasesTestKit
import Testing

/// The executable, with two gateways in front of one log, as two nodes behind a load balancer, and many who send the same
/// thing at once.
@Suite(.timeLimit(.minutes(2)))
struct TwoGatewaysTests {
  private static let senders = 50
  private static let signed: Int64 = 1_764_460_800_000
  private static let token = "aaaaaaaa-0000-4000-8000-00000000000a"

  private let program: Tool
  private let authority = LocalAuthority(seed: 29)
  private let client = HTTPClient(.init(totalSeconds: 60))

  init() throws {
    program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    try Data(authority.root.der).write(to: program.folder.appendingPathComponent("root.der"))
  }

  private func payload(_ transaction: String, _ product: String, _ type: String, more: String = "") -> String {
    #"{"environment":"Sandbox","bundleId":"com.example.app","transactionId":"\#(transaction)","#
      + #""originalTransactionId":"\#(transaction)","productId":"\#(product)","type":"\#(type)","#
      + #""purchaseDate":\#(Self.signed),"signedDate":\#(Self.signed)\#(more)}"#
  }

  private func notification(_ uuid: String, _ type: String, _ payload: String) throws -> String {
    let body =
      #"{"notificationType":"\#(type)","notificationUUID":"\#(uuid)","version":"2.0","signedDate":\#(Self.signed),"#
      + #""data":{"bundleId":"com.example.app","environment":"Sandbox","signedTransactionInfo":\#(payload)}}"#
    return #"{"signedPayload":"\#(try authority.sign(.notification, payload: Array(body.utf8)))"}"#
  }

  private func report(
    _ type: String, _ transaction: String, by account: String, attempt: String, _ payload: String
  ) throws -> String {
    let proof = try authority.sign(.transaction, payload: Array(payload.utf8))
    return #"{"type":"\#(type)","environment":"Sandbox","account":"\#(account)","attemptId":"\#(attempt)","#
      + #""transactionId":"\#(transaction)","#
      + #""signedTransaction":"\#(proof)"}"#
  }

  /// Starts a service and answers the address that it says.
  private func start(_ words: [String], says message: String) throws -> (Process, base: String) {
    let errors = Pipe()
    let process = try program.process(words, output: FileHandle.nullDevice, errors: errors)
    try process.run()
    var said = ""
    while true {
      let data = errors.fileHandleForReading.availableData
      try #require(!data.isEmpty, "it ended before it listened: \(said)")
      said += String(decoding: data, as: UTF8.self)
      for line in said.split(separator: "\n").dropLast(said.hasSuffix("\n") ? 0 : 1) {
        let told = try JSON(parsing: Array(line.utf8))
        guard told["message"]?.string == message, let address = told["address"]?.string else { continue }
        return (process, "http://\(address)")
      }
    }
  }

  /// Runs two gateways, sends to both from as many threads as there are requests, and answers the statuses.
  private func send(_ requests: [(path: String, body: String)]) throws -> [Int] {
    let nodes = try (0..<2).map { _ in try start(["gateway", "--listen", "127.0.0.1:0"], says: "listening") }
    defer {
      for node in nodes {
        node.0.terminate()
        node.0.waitUntilExit()
      }
    }
    let (client, bases) = (client, nodes.map(\.base))
    let gate = Gate()
    let answers = onThreads(requests.count) { index in
      gate.pass()
      let request = requests[index]
      let call = HTTPCall(
        "POST", bases[index % 2] + request.path, headers: [("content-type", "application/json")],
        body: Array(request.body.utf8))
      return (try? client.send(call))?.status ?? 0
    }
    gate.awaitArrivals(requests.count)
    gate.open()
    return answers.wait()
  }

  private func work() throws {
    let run = try program.run(
      ["run", "--until-idle", "--listen", "127.0.0.1:0", "--anchor", "root.der"] + Tool.stageOptions)
    try #require(run.status == 0, "\(run.errors)")
  }

  private func state(_ account: String) throws -> JSON {
    try JSON(parsing: Array(try program.run("state", "--account", account, "--json").output.utf8))
  }

  private func events(_ topic: String, _ type: String) throws -> [JSON] {
    try program.run("tail", topic).lines.map { try JSON(parsing: Array($0.utf8)) }.filter {
      let header = $0["headers"]?.array?.first { $0["name"]?.string == "ce_type" }
      return header?["value"]?.string?.hasPrefix(type) ?? false
    }
  }

  /// C30.
  @Test func oneConsumableSentByTwoAccountsIsOneCredit() throws {
    let coins = payload("1", "coins.100", "Consumable")
    var requests: [(path: String, body: String)] = []
    for index in 0..<Self.senders {
      for account in ["u1", "u2"] {
        requests.append(
          ("/v1/events", try report("payment.purchased", "1", by: account, attempt: "\(account)-\(index)", coins)))
      }
    }
    requests.append(("/v1/notifications", try notification(UUID().uuidString, "ONE_TIME_CHARGE", coins)))
    let statuses = try send(requests)
    #expect(statuses.allSatisfy { $0 == 200 || $0 == 202 }, "\(Set(statuses))")
    try work()
    #expect(try events("entitlements", "credit.added").count == 1)
    let states = [try state("u1"), try state("u2")]
    let balances = states.map { $0["balances"]?.array?.first?["amount"]?.int64 ?? 0 }
    #expect(balances.sorted() == [0, 100])
    let reasons = states.map { $0["permits"]?.array?.compactMap { $0["reason"]?.string } ?? [] }
    #expect(reasons[balances[0] == 100 ? 0 : 1] == ["granted"])
    #expect(reasons[balances[0] == 100 ? 1 : 0] == ["another-account"])
    for state in states {
      #expect(state["permits"]?.array?.compactMap { $0["status"]?.string } == ["finishable"])
    }
  }

  /// C30: the restore of a non-consumable from a second account.
  @Test func aRestoreFromASecondAccountIsAnsweredAndMovesNothing() throws {
    let pro = payload("2", "pro", "Non-Consumable")
    #expect(try send([("/v1/events", try report("payment.purchased", "2", by: "u1", attempt: "1", pro))]) == [202])
    try work()
    #expect(try send([("/v1/events", try report("payment.restored", "2", by: "u2", attempt: "2", pro))]) == [202])
    try work()
    #expect(try state("u1")["entitlements"]?.array?.compactMap { $0["entitlement"]?.string } == ["pro"])
    let second = try state("u2")
    #expect(second["entitlements"]?.array?.isEmpty == true)
    #expect(second["permits"]?.array?.compactMap { $0["reason"]?.string } == ["another-account"])
  }

  /// C20.
  @Test func fiftyCopiesOfANotificationAreOneEffect() throws {
    let pro = payload("3", "pro", "Non-Consumable", more: #","appAccountToken":"\#(Self.token)""#)
    let uuid = "0F6D1A5E-9E0B-4E39-8F63-6B6C43C4D0AE"
    let body = try notification(uuid, "ONE_TIME_CHARGE", pro)
    var requests = Array(repeating: (path: "/v1/notifications", body: body), count: Self.senders)
    for _ in 0..<3 {
      requests.append(("/v1/notifications", try notification(UUID().uuidString, "CONSUMPTION_REQUEST", pro)))
    }
    for _ in 0..<3 { #expect(try send([("/v1/notifications", body)]) == [200]) }
    #expect(try send(requests).allSatisfy { $0 == 200 })
    // The same id in lower case around another body.
    let other = payload("3", "pro", "Non-Consumable", more: #","appAccountToken":"\#(Self.token)","price":1"#)
    #expect(
      try send([("/v1/notifications", try notification(uuid.lowercased(), "ONE_TIME_CHARGE", other))]) == [200])
    try work()
    #expect(try events("entitlements", "entitlement.").count == 1)
    let quarantined = try events("quarantine", "")
    #expect(quarantined.count == 1)
    // Each request about consumption stands in the log; what changed nothing says so.
    let owned = try events("owned", "purchase.owned")
    let consumption = owned.filter {
      $0["value"]?["notification"]?["notificationType"]?.string == "CONSUMPTION_REQUEST"
    }
    #expect(consumption.count == 3)
    let standings = owned.compactMap { $0["value"]?["parts"]?.array?.first?["standing"]?.string }
    #expect(standings.count == owned.count - 1 || standings.count == owned.count - 2)
  }

  @Test func escrowIsMeasured() throws {
    let pro = payload("4", "pro", "Non-Consumable")
    #expect(
      try send([("/v1/notifications", try notification(UUID().uuidString, "ONE_TIME_CHARGE", pro))]) == [200])
    try work()
    let (process, base) = try start(
      ["stage", "ownership", "--health", "127.0.0.1:0", "--environment", "Sandbox"], says: "health is served")
    defer {
      process.terminate()
      process.waitUntilExit()
    }
    let text = String(decoding: try client.send(HTTPCall("GET", base + "/metrics")).body, as: UTF8.self)
    let metrics = text.split(separator: "\n")
    #expect(metrics.contains("purchases_escrow_chains 1"))
    let age = metrics.first { $0.hasPrefix("purchases_escrow_oldest_seconds ") }?.split(separator: " ").last
    #expect(age.flatMap { Double($0) }.map { $0 > 0 } == true, "\(text)")
  }
}
