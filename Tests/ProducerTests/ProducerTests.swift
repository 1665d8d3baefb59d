import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog
import PurchasesProducer
import Testing

/// A folder with an embedded log that has its topics, gone when the test is over.
final class LogFolder {
  let url: URL
  let topics = TopicSettings(partitions: 3)

  init(prepared: Bool = true) throws {
    url = FileManager.default.temporaryDirectory.appending(path: "purchases-producer-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    if prepared { try prepare() }
  }

  deinit {
    try? FileManager.default.removeItem(at: url)
  }

  var path: String { url.appending(path: "log.sqlite").path }
  var address: String { "sqlite:" + path }

  func prepare() throws {
    let log = try EmbeddedLog(path: path)
    try log.ensure(topics.specs)
    log.close()
  }

  func received() throws -> [StoredRecord] {
    let log = try EmbeddedLog(path: path)
    defer { log.close() }
    let reader = try log.reader()
    defer { reader.close() }
    var records: [StoredRecord] = []
    for partition in 0..<topics.partitions {
      records += try reader.read(TopicPartition(topics.name(.received), partition), from: 0, max: 10_000)
    }
    return records
  }
}

@Suite(.timeLimit(.minutes(1)))
struct ProducerTests {
  static let jws = "eyJhbGciOiJFUzI1NiJ9.eyJlbnZpcm9ubWVudCI6IlByb2R1Y3Rpb24iLCJvcmlnaW5hbFRyYW5zYWN0aW9uSWQiOiI3In0.eA"
  static let failure = PurchaseEvent.Failure(domain: "SKErrorDomain", code: 2, userCancelled: true)

  /// One of each, with the type that it must have on the wire.
  static let all: [(PurchaseEvent, EventType)] = [
    (.added(environment: .production, account: "u", attemptId: "1", productId: "p", quantity: 2), .paymentAdded),
    (.deferred(environment: .production, account: "u", attemptId: "2", productId: "p"), .paymentDeferred),
    (
      .purchased(
        environment: .production, account: "u", transactionId: "7", productId: "p", signedTransaction: jws),
      .paymentPurchased
    ),
    (
      .restored(
        environment: .production, account: "u", transactionId: "8", productId: "p", signedTransaction: jws,
        originalTransactionId: "7"), .paymentRestored
    ),
    (
      .failed(environment: .production, account: "u", attemptId: "3", productId: "p", failure: failure),
      .paymentFailed
    ),
    (
      .finished(
        environment: .production, account: "u", attemptId: "4", transactionId: "7",
        occurredAt: WireTime(secondsSince1970: 1.5)), .paymentFinished
    ),
    (.finished(environment: .production, account: "u", attemptId: "5", transactionId: nil), .paymentFinished),
    (.restoreStarted(environment: .sandbox, account: "u", attemptId: "6"), .restoreStarted),
    (.restoreCompleted(environment: .sandbox, account: "u", attemptId: "7"), .restoreCompleted),
    (.restoreFailed(environment: .sandbox, account: "u", attemptId: "8", failure: failure), .restoreFailed),
    (.notification(signedPayload: jws), .storeNotified),
    (
      .claimed(environment: .production, account: "u", originalTransactionId: "7", attemptId: "9"),
      .purchaseClaimed
    ),
    (
      .spendRequested(environment: .production, account: "u", unit: "coins", amount: 80, idempotencyKey: "k"),
      .creditSpendRequested
    ),
  ]

  @Test func everyEventIsDurableAsItsType() async throws {
    let folder = try LogFolder()
    let producer = try PurchasesProducer(
      log: folder.address, settings: .init(source: "/shop", now: { WireTime(milliseconds: 1_790_000_000_000) }))
    var receipts: [Receipt] = []
    for (event, _) in Self.all { receipts.append(try await producer.publish(event)) }
    #expect(await producer.close() == 0)
    let byPlace = Dictionary(uniqueKeysWithValues: try folder.received().map { ($0.coordinates, $0.record) })
    #expect(byPlace.count == Self.all.count)
    for (receipt, (_, type)) in zip(receipts, Self.all) {
      let record = try #require(
        byPlace[Coordinates(topic: receipt.topic, partition: receipt.partition, offset: receipt.offset)])
      let envelope = try Envelope(reading: record)
      #expect(envelope.type == type)
      #expect(envelope.id == receipt.id)
      #expect(envelope.source == "/shop")
      #expect(record.timestamp == Instant(milliseconds: 1_790_000_000_000))
      #expect(try ReceivedEvent(type: type, data: record.value ?? []).type == type)
    }
    #expect(receipts[2].permit?.count == 64)
    #expect(receipts[4].permit == "attempt:3")
    #expect(receipts[10].permit == nil)
  }

  @Test func theSameContentHasTheSameId() async throws {
    let folder = try LogFolder()
    let producer = try PurchasesProducer(log: folder.address)
    let first = try await producer.publish(Self.all[2].0)
    let second = try await producer.publish(Self.all[2].0)
    #expect(first.id == second.id)
    #expect(first.partition == second.partition)
    #expect(second.offset == first.offset + 1)
    await producer.close()
  }

  @Test func wrongValuesAreNamedByField() async throws {
    let folder = try LogFolder()
    let producer = try PurchasesProducer(log: folder.address)
    let wrong: [(PurchaseEvent, String)] = [
      (.added(environment: .sandbox, account: "a/b", attemptId: "1", productId: "p"), "account"),
      (.added(environment: .sandbox, account: "a", attemptId: "", productId: "p"), "attemptId"),
      (.added(environment: .sandbox, account: "a", attemptId: "1", productId: " "), "productId"),
      (.added(environment: .sandbox, account: "a", attemptId: "1", productId: "p", quantity: 0), "quantity"),
      (
        .purchased(
          environment: .sandbox, account: "a", transactionId: "x1", productId: "p", signedTransaction: Self.jws),
        "transactionId"
      ),
      (
        .purchased(environment: .sandbox, account: "a", transactionId: "1", productId: "p", signedTransaction: ""),
        "signedTransaction"
      ),
      (.notification(signedPayload: ""), "signedPayload"),
      (
        .spendRequested(environment: .sandbox, account: "a", unit: "coins", amount: 0, idempotencyKey: "k"), "amount"
      ),
    ]
    for (event, field) in wrong {
      do {
        try await producer.publish(event)
        Issue.record("\(field) was accepted")
      } catch {
        guard case .field(field, _) = error else {
          Issue.record("expected \(field), got \(error)")
          continue
        }
        #expect(!error.mayRetry)
      }
    }
    #expect(try folder.received().isEmpty)
    await producer.close()
  }

  @Test func aBatchKeepsTheOrderOfItsResults() async throws {
    let folder = try LogFolder()
    let producer = try PurchasesProducer(log: folder.address)
    var events: [PurchaseEvent] = []
    for index in 0..<300 {
      // Every seventh is wrong.
      events.append(
        .deferred(
          environment: .sandbox, account: index % 7 == 0 ? "" : "u\(index)", attemptId: "\(index)", productId: "p"))
    }
    let results = await producer.publish(events)
    #expect(results.count == 300)
    let stored = Dictionary(uniqueKeysWithValues: try folder.received().map { ($0.coordinates, $0.record) })
    #expect(stored.count == 300 - 43)
    for (index, result) in results.enumerated() {
      switch result {
      case .failure(let error): #expect(index % 7 == 0, "\(error)")
      case .success(let receipt):
        let place = Coordinates(topic: receipt.topic, partition: receipt.partition, offset: receipt.offset)
        let record = try #require(stored[place])
        #expect(record.key == Array("Sandbox/u\(index)".utf8))
      }
    }
    #expect(await producer.publish([]).isEmpty)
    await producer.close()
  }

  @Test func manyTasksShareOneProducer() async throws {
    let folder = try LogFolder()
    let producer = try PurchasesProducer(log: folder.address)
    let receipts = try await withThrowingTaskGroup(of: Receipt.self) { group in
      for index in 0..<200 {
        group.addTask {
          try await producer.publish(
            .deferred(environment: .sandbox, account: "u", attemptId: "\(index)", productId: "p"))
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(Set(receipts.map(\.id)).count == 200)
    #expect(Set(receipts.map(\.offset)) == Set(0..<200))
    #expect(await producer.close() == 0)
    #expect(try folder.received().count == 200)
  }

  @Test(arguments: ["", "log.sqlite", "sqlite:", "kafka://", "http://localhost", "postgres://x"])
  func addressesThatAreNone(address: String) {
    do {
      _ = try PurchasesProducer(log: address)
      Issue.record("\(address) was taken for an address")
    } catch {
      guard case .address = error else {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test func aMissingTopicIsRefusedAndAMissingFolderIsUnavailable() async throws {
    let folder = try LogFolder(prepared: false)
    let producer = try PurchasesProducer(log: folder.address)
    do {
      try await producer.publish(Self.all[0].0)
      Issue.record("a log without topics took an event")
    } catch {
      guard case .refused = error else {
        Issue.record("\(error)")
        return
      }
    }
    // Once the topics are there, the same producer goes on.
    try folder.prepare()
    try await producer.publish(Self.all[0].0)
    await producer.close()

    let late = try LogFolder(prepared: false)
    let inner = late.url.appending(path: "inner")
    let other = try PurchasesProducer(log: "sqlite:" + inner.appending(path: "log.sqlite").path)
    #expect(await failure { () async throws(ProducerError) in try await other.connect() } != nil)
    try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
    try await other.connect()
    await other.close()
  }

  private func failure(of body: () async throws(ProducerError) -> Void) async -> ProducerError? {
    do {
      try await body()
      return nil
    } catch {
      return error
    }
  }

  @Test func nothingIsPublishedAfterClose() async throws {
    let folder = try LogFolder()
    let producer = try PurchasesProducer(log: folder.address)
    try await producer.publish(Self.all[0].0)
    #expect(await producer.close() == 0)
    #expect(await producer.close() == 0)
    let error = await failure { () async throws(ProducerError) in _ = try await producer.publish(Self.all[1].0) }
    #expect(error == .closed)
    #expect(try folder.received().count == 1)
  }
}
