import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog
import PurchasesGateway
import PurchasesHTTPClient
import PurchasesJSON
import PurchasesSQLiteStore
import PurchasesTestKit
import Testing

/// The gateway on the embedded log and the SQLite store, over real sockets.
@Suite(.timeLimit(.minutes(1)))
struct RealLogTests {
  let folder: URL
  let topics = TopicSettings(partitions: 3)

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "purchases-gateway-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  private func openLog() throws -> EmbeddedLog {
    let log = try EmbeddedLog(path: folder.appending(path: "log.sqlite").path)
    try log.ensure(topics.specs)
    return log
  }

  private func received(_ log: EmbeddedLog) throws -> [StoredRecord] {
    let reader = try log.reader()
    defer { reader.close() }
    return try (0..<topics.partitions).flatMap {
      try reader.read(TopicPartition(topics.name(.received), $0), from: 0, max: 100_000)
    }
  }

  @Test func whatWasAcceptedIsOnTheLogAfterAStopInMidTraffic() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let log = try openLog()
    let producer = try log.producer()
    let gateway = try Gateway(.init(), producer: producer, store: nil, clock: FixedClock())
    let client = HTTPClient(.init(totalSeconds: 50))
    let url = "http://127.0.0.1:\(gateway.port)/v1/events"
    let first = Gate()
    let senders = onThreads(8) { sender in
      var accepted: [String] = []
      for index in 0..<10_000 {
        let call = HTTPCall(
          "POST", url, headers: [("content-type", "application/json")],
          body: Array(GatewayFixture.purchased("\(sender)\(1000 + index)").utf8))
        guard let answer = try? client.send(call), answer.status == 202,
          let id = try? JSON(parsing: answer.body)["id"]?.string
        else { return accepted }
        accepted.append(id)
        if index == 20 { first.arrive() }
      }
      return accepted
    }
    first.awaitArrivals(8)
    #expect(gateway.stop(within: 30))
    #expect(producer.close(withinMilliseconds: 30_000) == 0)
    let accepted = senders.wait().flatMap { $0 }
    let stored = Set(try received(log).compactMap { $0.record.headerText("ce_id") })
    log.close()
    #expect(accepted.count >= 8 * 20)
    #expect(stored.isSuperset(of: accepted))
    // Of each sender at most the request under way as the server stopped may be stored without an answer.
    #expect(stored.count - accepted.count <= 8)
  }

  @Test func eventsMeetByPurchaseAndKeepTheirOrder() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let log = try openLog()
    let gateway = try Gateway(.init(), producer: try log.producer(), store: nil, clock: FixedClock())
    let client = HTTPClient()
    let lines = (0..<200).map { index in
      let proof = GatewayFixture.transaction("\(1000 + index)", original: "\(index % 10)")
      return #"{"type":"payment.purchased","transactionId":"\#(1000 + index)","signedTransaction":"\#(proof)"}"#
    }
    let answer = try client.send(
      HTTPCall(
        "POST", "http://127.0.0.1:\(gateway.port)/v1/events", headers: [("content-type", "application/x-ndjson")],
        body: Array(lines.joined(separator: "\n").utf8)))
    #expect(answer.status == 202)
    gateway.stop(within: 10)
    let records = try received(log)
    log.close()
    #expect(records.count == 200)
    let byKey = Dictionary(grouping: records) { $0.record.key ?? [] }
    #expect(byKey.count == 10)
    for group in byKey.values {
      #expect(Set(group.map(\.coordinates.partition)).count == 1)
      let ids = group.compactMap { $0.record.value }.compactMap { try? JSON(parsing: $0)["transactionId"]?.string }
      #expect(ids == ids.sorted())
    }
  }

  @Test func aFullLogIsUnavailableAndNothingElseBreaks() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let log = try EmbeddedLog(path: folder.appending(path: "log.sqlite").path, options: .init(maximumSize: 2_000_000))
    try log.ensure(topics.specs)
    let gateway = try Gateway(.init(), producer: try log.producer(), store: nil, clock: FixedClock())
    let client = HTTPClient()
    var accepted: [String] = []
    var last = 202
    for index in 0..<1000 where last == 202 {
      let padding = String(repeating: "x", count: 20_000)
      let answer = try client.send(
        HTTPCall(
          "POST", "http://127.0.0.1:\(gateway.port)/v1/events", headers: [("content-type", "application/json")],
          body: Array(GatewayFixture.purchased("\(index)", extra: #","padding":"\#(padding)""#).utf8)))
      last = answer.status
      if last == 202, let id = try JSON(parsing: answer.body)["id"]?.string { accepted.append(id) }
    }
    #expect(last == 503)
    #expect(!accepted.isEmpty)
    gateway.stop(within: 10)
    #expect(try received(log).compactMap { $0.record.headerText("ce_id") }.sorted() == accepted.sorted())
    log.close()
  }

  @Test func answersComeFromTheStore() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let log = try openLog()
    let store = SQLiteStore(path: folder.appending(path: "store.sqlite").path)
    try store.migrate()
    let stage = try store.stage("entitlements", group: "g")
    let partition = TopicPartition(topics.name(.owned), 0)
    let epoch = try #require(try stage.claim([partition])[partition]).epoch
    let gateway = try Gateway(
      .init(), producer: try log.producer(), store: try store.reader(), clock: FixedClock())
    let client = HTTPClient(.init(totalSeconds: 50))
    let base = "http://127.0.0.1:\(gateway.port)/v1"
    let poll = onThreads(1) { _ in
      (try? client.send(HTTPCall("GET", base + "/permits/Production/u?transaction=1&wait=40"))).flatMap {
        try? JSON(parsing: $0.body)["status"]?.string
      }
    }
    let key = RowKey(.permit, [.text("Production"), .text("u"), .text("d1")])
    let row = Row(
      key,
      [
        .text("finishable"), .text("granted"), .text("granted"), .text("1"), .text("coins"), .text("e1"),
        .integer(1000),
      ])
    try stage.commit(
      StoreTransaction(
        advances: [Advance(partition: partition, epoch: epoch, from: nil, next: 1, outgoing: [])],
        writes: [.put(row), .put(try GatewayFixture.accountRow("u")), .put(GatewayFixture.catalogueRow)]),
      published: [:])
    #expect(poll.wait() == ["finishable"])
    let account = try client.send(HTTPCall("GET", base + "/accounts/Production/u"))
    let answer = try JSON(parsing: account.body)
    #expect(answer["permits"]?.array?.count == 1)
    // The row says of which partition; this one has worked on partition 0 alone.
    #expect(answer["position"] == .string("\(topics.name(.owned))/0/1"))
    gateway.stop(within: 10)
    stage.close()
    store.close()
    log.close()
  }
}
