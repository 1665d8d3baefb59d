import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesKafkaLog
import Testing

/// A broker that requires TLS and a password.
@Suite(.serialized, .enabled(if: Broker.secured != nil, Comment(rawValue: Broker.whySecured)))
struct KafkaSecurityTests {
  let servers: String
  let settings: [String: String]

  init() throws {
    var settings: [String: String] = [:]
    for line in try String(contentsOfFile: Broker.secured ?? "", encoding: .utf8).split(separator: "\n") {
      let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
      if parts.count == 2 { settings[parts[0]] = parts[1] }
    }
    let found = settings.removeValue(forKey: "bootstrap.servers")
    servers = try #require(found)
    self.settings = settings
  }

  @Test func writesAndReads() throws {
    let log = try Broker.log(settings, servers: servers)
    let topic = try Broker.topic("secure", on: log)
    let worker = try log.worker(WorkerSettings(group: Broker.fresh("g"), topics: [topic], instance: "one"))
    var membership: Membership?
    while membership == nil {
      if case .assigned(let partitions) = try worker.poll(max: 1, waitMilliseconds: 500), let first = partitions.first {
        try worker.start([first: 0])
        membership = try worker.membership()
      }
    }
    let record = Record(key: [1], value: [2], timestamp: Instant(milliseconds: 3))
    try worker.commit(
      [ProducedRecord(topic: topic, record: record)], offsets: [:], membership: #require(membership))
    #expect(try log.bounds(of: topic)[0]?.start == 0)
    let reader = try log.reader()
    #expect(try reader.read(TopicPartition(topic, 0), from: 0, max: 10).map(\.record) == [record])
    reader.close()
    worker.close()
  }

  /// The reason must say what is wrong; how long it took is asked of the time-out: a client that only waited would say so.
  func refused(_ change: [String: String], says text: String) {
    do {
      _ = try Broker.log(settings.merging(change) { $1 }, servers: servers)
      Issue.record("let in with \(change.keys)")
    } catch {
      let failure = error
      #expect(failure.kind == .refused, "\(failure)")
      #expect(failure.reason.lowercased().contains(text), "\(failure)")
      #expect(!failure.reason.contains("wrong-password"))
    }
  }

  @Test func aWrongPasswordIsTold() { refused(["sasl.password": "wrong-password"], says: "authentication") }
  @Test func anUnknownUserIsTold() { refused(["sasl.username": "nobody"], says: "authentication") }
  @Test func anotherMechanismIsTold() { refused(["sasl.mechanism": "PLAIN"], says: "mechanism") }

  @Test func aStrangersCertificateIsTold() throws {
    // Any other authority than the one that signed the broker's certificate.
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(Broker.fresh("ca"))
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("other.pem").path
    try run(
      "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Somebody else", "-keyout",
      file + ".key", "-out", file)
    refused(["ssl.ca.location": file], says: "certificate")
  }
}
