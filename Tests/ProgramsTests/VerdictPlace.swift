import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesHTTPServer
import PurchasesJSON
import PurchasesLocalAppStore
import PurchasesRunner
import Testing

/// A deployment that has judged one proof of every kind: its folder, and what its topic `verified` holds of each.
final class VerdictPlace {
  let tool: Tool
  let authority: LocalAuthority
  let responder: ResponderServer
  let servers: AppleServers
  private var lines: [String] = []
  private var names: [String] = []

  static let day: Int64 = 1_764_460_800_000

  init() throws {
    tool = try Tool()
    responder = try ResponderServer(clock: SystemClock())
    let folder = tool.folder.appendingPathComponent("store").path
    authority = try LocalAuthority(folder: folder, responder: responder.url)
    responder.serve(authority)
    try authority.keepReceiptCertificates(folder: folder)
    let files = try authority.keepServerFiles(in: folder)
    let http = HTTPServer.Settings(tls: .init(certificatePath: files.certificate, keyPath: files.key))
    servers = try AppleServers(
      AppleBooks(authority), settings: .init(production: http, sandbox: http), clock: SystemClock())
    try tool.write("catalogue.json", Tool.catalogue)
  }

  deinit {
    servers.stop(within: 5)
    responder.stop(within: 5)
  }

  func sign(_ kind: ProofKind, _ payload: String) throws -> String {
    try authority.sign(kind, payload: Array(payload.utf8), asStore: false)
  }

  static func transaction(_ id: String, _ more: String = "", bundle: String = "com.example.app") -> String {
    #"{"environment":"Sandbox","bundleId":"\#(bundle)","transactionId":"\#(id)","originalTransactionId":"\#(id)","#
      + #""productId":"p","type":"Consumable","purchaseDate":\#(day),"signedDate":\#(day)\#(more)}"#
  }

  static func receipt(_ ids: [String], environment: String = "ProductionSandbox") throws -> AppReceipt {
    let purchases = ids.map {
      #"{"transactionId":"\#($0)","productId":"p","purchaseDate":"2025-09-30T00:00:00Z","type":"Consumable"}"#
    }
    let text =
      #"{"environment":"\#(environment)","bundleId":"com.example.app","receiptCreationDate":"2025-10-01T00:00:00Z","#
      + #""deviceId":"\#(device)","inApp":[\#(purchases.joined(separator: ","))]}"#
    return try AppReceipt(Fields(parsing: Array(text.utf8)))
  }

  static let device = "6E1E6D7B-0000-4000-8000-0000000000AA"

  func notification(_ uuid: String, bundle: String = "com.example.app", id: String = "30") throws -> String {
    let transaction = try sign(.transaction, Self.transaction(id, bundle: bundle))
    let renewal = try sign(
      .renewalInfo,
      #"{"environment":"Sandbox","originalTransactionId":"\#(id)","autoRenewProductId":"p","productId":"p","#
        + #""autoRenewStatus":1,"signedDate":\#(Self.day)}"#)
    let app = try sign(
      .appTransaction,
      #"{"receiptType":"Sandbox","bundleId":"com.example.app","receiptCreationDate":\#(Self.day),"#
        + #""applicationVersion":"1"}"#)
    return try sign(
      .notification,
      #"{"notificationType":"DID_RENEW","notificationUUID":"\#(uuid)","version":"2.0","signedDate":\#(Self.day),"#
        + #""data":{"bundleId":"com.example.app","environment":"Sandbox","signedTransactionInfo":"\#(transaction)","#
        + #""signedRenewalInfo":"\#(renewal)"},"appData":{"bundleId":"com.example.app","environment":"Sandbox","#
        + #""signedAppTransactionInfo":"\#(app)"}}"#)
  }

  /// An event to be judged, under a name.
  func receive(_ name: String, _ members: String, type: String = "payment.purchased") {
    names.append(name)
    lines.append(#"{"type":"\#(type)",\#(members)}"#)
  }

  /// A payment with a proof; it names the transaction.
  func pay(
    _ name: String, _ id: String, _ member: String, _ proof: String, _ more: String = "",
    type: String = "payment.purchased"
  ) {
    receive(
      name, #""account":"a1","attemptId":"\#(name)","transactionId":"\#(id)","\#(member)":"\#(proof)"\#(more)"#,
      type: type)
  }

  /// What the topic `verified` holds of each, by name; several where a receipt has several chains.
  func judged(_ more: String...) throws -> [String: [String]] {
    let published = try tool.run("publish", "--file", "-", input: lines.joined(separator: "\n"))
    try #require(published.status == 0, "\(published.output)\(published.errors)")
    let run = try tool.run(
      ["run", "--until-idle", "--listen", "127.0.0.1:0"] + Tool.stageOptions + [
        "--anchor", "store/root.der", "--receipt-anchor", "store/receipt-root.der", "--apple-ca", "store/tls.pem",
        "--receipt-host", "https://127.0.0.1:\(servers.port(.production))", "--receipt-sandbox-host",
        "https://127.0.0.1:\(servers.port(.sandbox))",
      ] + more)
    try #require(run.status == 0, "\(run.errors)")
    // By where the records of the events are: the names are in the order of the lines, and each partition in its own.
    let received = try tool.run("tail", "received").lines.map { try JSONDocument(parsing: Array($0.utf8)).root }
    var places: [String: String] = [:]
    for (name, line) in zip(names, lines) {
      let members = try JSONDocument(parsing: Array(line.utf8)).root
      let found = received.first { record in
        ["attemptId", "signedPayload"].contains { member in
          members[member] != nil && record["value"]?[member]?.string == members[member]?.string
        }
      }
      let record = try #require(found, "\(name) is not in the log")
      places["\(record["partition"]?.int64 ?? -1)/\(record["offset"]?.int64 ?? -1)"] = name
    }
    var verdicts: [String: [String]] = [:]
    for line in try tool.run("tail", "verified").lines {
      let record = try JSONDocument(parsing: Array(line.utf8)).root
      func header(_ name: String) -> String {
        record["headers"]?.elements.first { $0["name"]?.string == name }?["value"]?.string ?? ""
      }
      let place = "\(header("ce_originpartition"))/\(header("ce_originoffset"))"
      verdicts[try #require(places[place]), default: []].append(line)
    }
    return verdicts
  }

  /// `purchases verify --verdict`, with neither log nor network.
  func again(
    _ event: String, _ more: String..., receipt: Bool = false
  ) throws -> (status: Int32, told: JSONView?, errors: String) {
    try tool.write("event.json", event)
    let result = try tool.run(
      ["verify", "--verdict", "event.json", "--anchor", receipt ? "store/receipt-root.der" : "store/root.der"] + more)
    return (result.status, try? JSONDocument(parsing: Array(result.output.utf8)).root, result.errors)
  }
}
