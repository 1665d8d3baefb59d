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

/// `purchases backfill` as a process, against Apple's servers played over TLS.
@Suite(.timeLimit(.minutes(2)))
struct BackfillTests {
  static let day: Int64 = 86_400_000
  let tool: Tool
  let authority = LocalAuthority(seed: 21)
  let books: AppleBooks
  let servers: AppleServers
  let clock = SystemClock()

  init() throws {
    tool = try Tool()
    let files = try authority.keepServerFiles(in: tool.folder.path)
    books = AppleBooks(authority)
    let http = HTTPServer.Settings(tls: .init(certificatePath: files.certificate, keyPath: files.key))
    servers = try AppleServers(books, settings: .init(production: http, sandbox: http), clock: clock)
    tool.environment = [
      "PURCHASES_LOG": "sqlite:log.db", "PURCHASES_BUNDLE_ID": "com.example.app",
      "PURCHASES_API_KEY": "AuthKey_\(APICredentials.keyID).p8", "PURCHASES_API_KEY_ID": APICredentials.keyID,
      "PURCHASES_API_ISSUER_ID": APICredentials.issuerID, "PURCHASES_APPLE_CA": "tls.pem",
      "PURCHASES_API_HOST": "https://127.0.0.1:\(servers.port(.production))",
      "PURCHASES_API_SANDBOX_HOST": "https://127.0.0.1:\(servers.port(.sandbox))",
    ]
  }

  /// So many notifications, one an hour, the last one an hour ago.
  private func send(_ count: Int, _ environment: String = "Production") throws -> [String] {
    let now = clock.now()
    return try (0..<count).map { number in
      let at = now.advanced(byMilliseconds: Int64(number - count) * 3_600_000)
      let uuid = String(format: "00000000-0000-4000-8000-%012d", number)
      return try books.send(
        Array(
          (#"{"notificationType":"TEST","notificationUUID":"\#(uuid)","version":"2.0","signedDate":\#(at.milliseconds),"#
            + #""data":{"bundleId":"com.example.app","environment":"\#(environment)"}}"#).utf8), at: at,
        attempts: number % 3 == 0 ? [] : [.init(at: at, result: "SUCCESS")])
    }
  }

  /// As the gateway puts what Apple sends onto the log.
  private func publish(_ payloads: [String]) throws {
    let log = try EmbeddedLog(path: tool.folder.appendingPathComponent("log.db").path)
    defer { log.close() }
    let topics = TopicSettings()
    try log.ensure(topics.specs)
    let producer = try log.producer()
    let records = payloads.map {
      ReceivedRecord(.notified(StoreNotified(signedPayload: $0))).produced(to: topics, source: "/test", at: clock.now())
    }
    for result in producer.publishAndWait(records) { _ = try result.get() }
    _ = producer.close(withinMilliseconds: 10_000)
  }

  private func received() throws -> [(id: String, signedPayload: String, isBackfill: Bool)] {
    let log = try EmbeddedLog(path: tool.folder.appendingPathComponent("log.db").path)
    defer { log.close() }
    var all: [(id: String, signedPayload: String, isBackfill: Bool)] = []
    try TopicTail(log: log, topic: TopicSettings().name(.received)).run(
      from: nil, follow: false, limit: nil, until: StopSignal()
    ) { stored in
      let envelope = try Envelope(reading: stored.record)
      guard case .notified(let event) = try ReceivedEvent(type: .storeNotified, data: stored.record.value ?? []) else {
        return
      }
      all.append((envelope.id, event.signedPayload, event.isBackfill))
    }
    return all
  }

  private func json(_ result: Tool.Result) throws -> JSON { try JSON(parsing: Array(result.output.utf8)) }

  @Test func onlyWhatIsMissingIsPublishedAndASecondRunFindsNothing() throws {
    let all = try send(50)
    try publish(all.enumerated().filter { $0.offset % 5 != 0 }.map(\.element))
    let dry = try tool.run("backfill", "--dry-run", "--json")
    #expect(dry.status == 0, "\(dry.errors)")
    #expect(try json(dry)["missing"]?.int64 == 10)
    #expect(try received().count == 40)
    let first = try tool.run("backfill", "--json")
    #expect(first.status == 0, "\(first.errors)")
    let outcome = try json(first)
    #expect(outcome["listed"]?.int64 == 50)
    #expect(outcome["isCut"]?.bool == false)
    #expect(outcome["present"]?.int64 == 40)
    #expect(outcome["published"]?.int64 == 10)
    #expect(outcome["undelivered"]?.int64 == 17)
    #expect(outcome["completenessBefore"] == .number("0.800000"))
    #expect(outcome["completeness"] == .number("1.000000"))
    let found = try received()
    #expect(Set(found.map(\.signedPayload)) == Set(all))
    #expect(
      found.filter(\.isBackfill).map(\.signedPayload).sorted()
        == stride(from: 0, to: 50, by: 5).map { all[$0] }.sorted())
    // The same bytes have one id, whichever way they came.
    for record in found {
      #expect(record.id == ReceivedRecord(.notified(StoreNotified(signedPayload: record.signedPayload))).id)
    }
    let second = try json(try tool.run("backfill", "--json"))
    #expect(second["published"]?.int64 == 0)
    #expect(second["completenessBefore"] == .number("1.000000"))
    #expect(try received().count == 50)
  }

  @Test func noFurtherBackIsAskedThanAppleKeeps() throws {
    _ = try send(3)
    _ = try send(2, "Sandbox")
    let from = clock.now().advanced(byMilliseconds: -300 * Self.day).rfc3339
    for (environment, days) in [("Production", "180"), ("Sandbox", "30")] {
      let cut = try tool.run("backfill", "--from", from, "--environment", environment)
      #expect(cut.status == 0, "\(cut.errors)")
      #expect(cut.lines.first?.hasPrefix("Apple keeps \(days) days of ") == true, "\(cut.output)")
    }
    #expect(try received().count == 5)
    let to = clock.now().advanced(byMilliseconds: -250 * Self.day).rfc3339
    let long = try json(try tool.run("backfill", "--from", from, "--to", to, "--json"))
    #expect(long["listed"]?.int64 == 0)
    #expect(long["isCut"]?.bool == true)
  }

  @Test func anOutageIsOutlastedOrTold() throws {
    let all = try send(30)
    let script = try #require(servers.outages[.production])
    script.add(.status(503), on: "/inApps/v1/notifications")
    script.add(.webPage, on: "/inApps/v1/notifications")
    #expect(try json(try tool.run("backfill", "--json"))["published"]?.int64 == 30)
    script.add(.status(503), times: 100, on: "/inApps/v1/notifications")
    let failed = try tool.run("backfill")
    #expect(failed.status == 1)
    #expect(failed.errors.contains("Apple can't answer (HTTP 503)"))
    script.clear()
    script.add(.status(401))
    let refused = try tool.run("backfill")
    #expect(refused.status == 1)
    #expect(refused.errors.contains("check issuer id"))
    #expect(Set(try received().map(\.signedPayload)) == Set(all))
  }

  @Test func whatIsMissingIsNamedAndNoSecretIsShown() throws {
    for name in ["API_KEY", "API_KEY_ID", "API_ISSUER_ID", "BUNDLE_ID"] {
      let kept = tool.environment.removeValue(forKey: "PURCHASES_" + name)
      let result = try tool.run("backfill")
      #expect(result.status == 2)
      #expect(
        result.errors.contains("--" + name.lowercased().replacingOccurrences(of: "_", with: "-")), "\(result.errors)")
      tool.environment["PURCHASES_" + name] = kept
    }
    for (words, mention) in [
      (["backfill", "--environment", "Xcode"], "--environment"),
      (["backfill", "--api-host", "http://example.com"], "--api-host"),
      (["backfill", "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"], "--from"),
    ] {
      let result = try tool.run(words)
      #expect(result.status == 2)
      #expect(result.errors.contains(mention), "\(result.errors)")
    }
    tool.environment["PURCHASES_SHARED_SECRET"] = "canary-secret"
    let doctor = try tool.run("doctor")
    #expect(doctor.output.contains("shared-secret = ***"))
    #expect(doctor.output.contains("api-sandbox-host = https://127.0.0.1"))
    #expect(!doctor.output.contains("canary"))
  }
}
