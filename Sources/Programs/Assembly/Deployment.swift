import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog
import PurchasesKafkaLog
import PurchasesPostgresStore
import PurchasesRunner
import PurchasesSQLiteStore

/// The settings that every part of a deployment shares, and how its log and store are opened.
public struct Deployment: Sendable {
  public var log: LogAddress
  public var store: StoreAddress
  public var topics: TopicSettings
  public var group: String
  public var instance: String?
  public var clock: any Clock
  public var logger: Logger
  public var metrics: Metrics

  public static let defaultLog = "sqlite:purchases.log.db"
  public static let defaultStore = "sqlite:purchases.db"
  public static let defaultPrefix = "purchases."
  public static let defaultGroup = "purchases"
  /// As many as one host has cores, or a few; more of them is easier at the beginning than later.
  public static let defaultPartitions: Int32 = 4
  /// One broker is enough to try it; a cluster has three.
  public static let defaultReplication: Int16 = 1

  /// - Parameter quietly: tools speak up only when something is wrong; services say what they do.
  public init(
    _ values: SettingValues, clock: any Clock = SystemClock(), quietly: Bool = true
  ) throws(UsageError) {
    log = try LogAddress(values.text(.log) ?? Self.defaultLog, kafka: values.texts(.kafka))
    store = try StoreAddress(values.text(.store) ?? Self.defaultStore)
    let replication: Int16 = try values.number(.replication, 1...100) ?? Self.defaultReplication
    let partitions: Int32 = try values.number(.partitions, 1...10_000) ?? Self.defaultPartitions
    topics = TopicSettings(
      prefix: try Self.name(values, .prefix) ?? Self.defaultPrefix, partitions: partitions, replication: replication)
    group = try Self.name(values, .group) ?? Self.defaultGroup
    instance = try Self.name(values, .instance)
    self.clock = clock
    logger = Logger(clock: clock, minimum: try values.flag(.verbose) ? .debug : quietly ? .warning : .info)
    metrics = Metrics()
  }

  /// Kafka takes these characters in the names of topics, groups and instances.
  private static func name(_ values: SettingValues, _ setting: Setting) throws(UsageError) -> String? {
    guard let text = values.text(setting) else { return nil }
    let isName =
      (1...100).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        (byte >= 48 && byte <= 57) || (byte | 0x20 >= 97 && byte | 0x20 <= 122) || byte == 45 || byte == 46
          || byte == 95
      }
    guard isName else { throw UsageError("--\(setting.name): 1 to 100 of letters, digits, '.', '_' and '-'") }
    return text
  }

  public func group(_ stage: StageName) -> String { "\(group).\(stage.rawValue)" }

  public func openLog() throws -> any EventLog {
    switch log {
    case .embedded(let path): return try EmbeddedLog(path: path)
    case .kafka(let servers, let settings):
      let logger = logger
      let checked: KafkaLogSettings
      do throws(LogFailure) {
        checked = try KafkaLogSettings(url: "kafka://\(servers)", settings: settings)
      } catch { throw UsageError("--log or --kafka: \(error.reason)") }
      return try KafkaLog(checked) { _, line in logger.debug("librdkafka", ["line": line]) }
    }
  }

  /// Whether opening the log makes no new file.
  var logIsThere: Bool {
    if case .embedded(let path) = log { Files.exists(path) } else { true }
  }

  /// Opens the log and creates what topics are missing.
  public func openLogWithTopics() throws -> any EventLog {
    let log = try openLog()
    do { try log.ensure(topics.specs) } catch {
      log.close()
      throw error
    }
    return log
  }

  public func openStore() throws -> any Store { try Self.open(store) }

  /// Opens the store for reading what is in it: a file that isn't there is a mistake and not a new store.
  public func openExistingStore() throws -> any Store {
    if case .sqlite(let path) = store, !Files.exists(path) {
      throw UsageError("--store sqlite:\(path): there is no such file")
    }
    return try openStore()
  }

  /// False for an SQLite file that is not there.
  public var hasStore: Bool {
    guard case .sqlite(let path) = store else { return true }
    return Files.exists(path)
  }

  /// Opens a store and brings its schema up to date.
  public static func open(_ address: StoreAddress) throws -> any Store {
    let store = unopened(address)
    try store.migrate()
    return store
  }

  /// The store as it is, for who only looks: nothing is made, and no schema is changed under a program that runs.
  func untouchedStore() throws -> any Store {
    if case .sqlite(let path) = store, !Files.exists(path) {
      throw UsageError("there is no file \(path): nothing has run yet, or the store is somewhere else")
    }
    return Self.unopened(store)
  }

  private static func unopened(_ address: StoreAddress) -> any Store {
    switch address {
    case .sqlite(let path): SQLiteStore(path: path)
    case .postgres(let url): PostgresStore(url: url)
    }
  }

  /// Settings of one stage's loop.
  public func runner(_ stage: StageName) -> RunnerSettings {
    // Without a name of its own a process is a new member each time; its transactions are told apart by the group.
    let name = instance ?? "\(ProcessInfo.processInfo.processIdentifier)-\(UUID().uuidString.prefix(8))"
    var settings = RunnerSettings(topics: topics, group: group(stage), instance: "\(group(stage)).\(name)")
    settings.isStatic = instance != nil
    switch stage {
    case .verification: break
    case .ownership: settings.stagesBefore = before(.verification)
    case .entitlements: settings.stagesBefore = before(.verification, .ownership)
    case .auditing: settings.stagesBefore = before(.verification, .ownership, .entitlements)
    }
    return settings
  }

  private func before(_ stages: StageName...) -> [(group: String, topic: Topic)] {
    stages.map { (group($0), Self.input($0)) }
  }

  /// All topics that a stage reads.
  static func inputs(_ stage: StageName) -> [Topic] {
    switch stage {
    case .verification: [.received, .parked]
    case .ownership, .entitlements: [input(stage)]
    case .auditing: Topic.audited
    }
  }

  /// The topic that a stage works off.
  public static func input(_ stage: StageName) -> Topic {
    switch stage {
    case .verification: .received
    case .ownership: .verified
    case .entitlements: .owned
    case .auditing: .entitlements
    }
  }
}
