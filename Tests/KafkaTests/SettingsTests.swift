import PurchasesContracts
import PurchasesKafka
import PurchasesKafkaLog
import Testing

@Suite struct KafkaSettingsTests {
  @Test(arguments: [
    ("enable.auto.commit", "true"), ("enable.auto.offset.store", "true"), ("enable.idempotence", "false"),
    ("acks", "1"), ("request.required.acks", "0"), ("isolation.level", "read_uncommitted"),
    ("auto.offset.reset", "latest"), ("partitioner", "random"), ("transactional.id", "mine"), ("group.id", "mine"),
    ("enable.partition.eof", "false"), ("delivery.report.only.error", "true"), ("queuing.strategy", "lifo"),
  ]) func refusesWhatWouldBreakAGuarantee(name: String, value: String) {
    do {
      _ = try KafkaSettings([name: value])
      Issue.record("\(name)=\(value) was accepted")
    } catch {
      #expect(error.severity == .setting)
      #expect(error.setting == name)
      #expect(error.message.contains(name))
    }
  }

  @Test(arguments: [
    ("enable.auto.commit", "false"), ("enable.idempotence", "true"), ("acks", "all"), ("acks", "-1"),
    ("isolation.level", "read_committed"), ("auto.offset.reset", "error"), ("partitioner", "murmur2_random"),
  ]) func acceptsWhatIsSoAnyway(name: String, value: String) throws {
    try KafkaSettings([name: value]).validate()
  }

  @Test(arguments: [
    ("no.such.setting", "1"), ("linger.ms", "soon"), ("security.protocol", "carrier-pigeon"),
    ("session.timeout.ms", "-5"), ("compression.type", "shrink"),
  ]) func namesTheSettingThatIsWrong(name: String, value: String) throws {
    let settings = try KafkaSettings([name: value])
    do {
      try settings.validate()
      Issue.record("\(name)=\(value) was accepted")
    } catch {
      #expect(error.severity == .setting)
      #expect(error.setting == name)
      #expect(error.message.contains(name))
    }
  }

  @Test func namesTheSettingThatOnlyAClientFindsWrong() throws {
    let settings = try KafkaSettings([
      "bootstrap.servers": "127.0.0.1:1", "security.protocol": "ssl", "ssl.ca.location": "/nowhere/ca.pem",
    ])
    do {
      _ = try KafkaProducer(settings: settings)
      Issue.record("a missing certificate file was accepted")
    } catch {
      #expect(error.severity == .setting)
      #expect(error.setting == "ssl.ca.location")
    }
  }

  @Test func repeatsNoSecret() throws {
    let secret = "hunter2-and-more"
    let settings = try KafkaSettings(["ssl.key.pem": secret, "ssl_key": secret])
    do {
      try settings.validate()
    } catch {
      #expect(!error.description.contains(secret))
    }
  }

  @Test(arguments: [
    "", "kafka:", "http://localhost:9092", "kafka://", "kafka://localhost", "kafka://localhost:", "kafka://:9092",
    "kafka://localhost:0", "kafka://localhost:65536", "kafka://a:1,", "kafka://a:1,,b:2",
    "kafka://user:pa55phrase@host:9092",
    "kafka://host:9092/topic",
  ]) func refusesAddressesThatAreNone(url: String) {
    do {
      _ = try KafkaLogSettings(url: url)
      Issue.record("\(url) was accepted")
    } catch {
      #expect(error.kind == .refused)
      #expect(!error.reason.contains("pa55phrase"))
    }
  }

  @Test func takesSeveralServersAndAnySetting() throws {
    _ = try KafkaLogSettings(
      url: "kafka://one:9092,two.example:19092,[::1]:9092",
      settings: ["security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u", "linger.ms": "7"])
  }

  @Test func refusesASettingByItsKind() {
    do {
      _ = try KafkaLogSettings(url: "kafka://one:9092", settings: ["enable.idempotence": "false"])
      Issue.record("accepted")
    } catch {
      #expect(error.kind == .refused)
      #expect(error.reason.contains("enable.idempotence"))
    }
  }

  @Test func defaultsStepBackForWhatIsSet() throws {
    let settings = try KafkaSettings(["queue.buffering.max.ms": "50", "session.timeout.ms": "9000"])
      .withDefaults(["linger.ms": "1", "session.timeout.ms": "10000", "client.id": "x"])
    #expect(settings["linger.ms"] == nil)
    #expect(settings["session.timeout.ms"] == "9000")
    #expect(settings["client.id"] == "x")
  }

  @Test func anUnreachableClusterIsUnavailable() {
    // Port 1 of this machine: nobody listens there.
    do {
      _ = try KafkaAdmin(settings: KafkaSettings(["bootstrap.servers": "127.0.0.1:1"])).connect(milliseconds: 600)
      Issue.record("connected to nobody")
    } catch {
      #expect(error.severity == .retriable)
    }
  }
}

@Suite struct KafkaPartitionerTests {
  /// Hashes that Kafka's own unit tests of the Java client give for these keys.
  static let javaHashes: [(String, Int32)] = [
    ("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536),
    ("a-little-bit-longer-string", -1_486_304_829),
    ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971), ("abc", 479_470_107),
  ]

  @Test(arguments: javaHashes) func choosesAsTheJavaClient(key: String, hash: Int32) {
    for count in [1, 2, 3, 4, 6, 7, 12, 50, 1000] as [Int32] {
      #expect(KafkaProducer.partition(ofKey: Array(key.utf8), among: count) == (hash & 0x7fff_ffff) % count)
    }
  }

  @Test func agreesWithTheOneOfTheContracts() {
    let seed = UInt64.random(in: 0...UInt64.max)
    var state = seed
    func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state >> 33
    }
    for _ in 0..<2_000 {
      let key = (0..<Int(next() % 60)).map { _ in UInt8(truncatingIfNeeded: next()) }
      let count = Int32(next() % 100 + 1)
      #expect(
        KafkaProducer.partition(ofKey: key, among: count) == Partitioner.partition(forKey: key, of: count),
        "seed \(seed), key \(key), \(count) partitions")
    }
  }
}
