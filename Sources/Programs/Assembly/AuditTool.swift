import PurchasesAuditing
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// The audit commands on a deployment, or on an exported folder alone.
public struct AuditTool {
  private let values: SettingValues
  private let deployment: Deployment

  public init(_ values: SettingValues) throws(UsageError) {
    self.values = values
    deployment = try Deployment(values)
  }

  /// Checks an exported folder, or the log itself and, where the store is there, the store against it.
  public func verify(from folder: String?, progress: (Int64) -> Void) throws -> AuditReport {
    if let folder {
      let key = try values.text(.vkey).map { _ in try AuditKey.verifier(values, deployment) }
      return try AuditArchive(try DiskFolder(folder, flag: "from")).verify(key: key, progress: progress)
    }
    let key = try AuditKey.verifier(values, deployment)
    let log = try deployment.openLog()
    defer { log.close() }
    let store = try existingStore()
    defer { store?.close() }
    let reader = try store?.reader()
    defer { reader?.close() }
    return try AuditVerifier(topics: deployment.topics, key: key).verify(
      try live(log), store: reader, progress: progress)
  }

  public func export(to folder: String, progress: (Int64) -> Void) throws -> AuditExport.Outcome {
    let key = try AuditKey.verifier(values, deployment)
    let log = try deployment.openLog()
    defer { log.close() }
    return try AuditExport(topics: deployment.topics, key: key).write(
      try live(log), to: try DiskFolder(empty: folder, flag: "to"), progress: progress)
  }

  /// A proof that a record is in the log, as text that stands for itself.
  public func prove(_ place: String, offset: Int64?, index: Int64?, from folder: String?) throws -> String {
    guard let mark = place.lastIndex(of: "/"), let partition = Int32(place[place.index(after: mark)...]),
      let topic = Topic(rawValue: String(place[..<mark]))
    else { throw UsageError("purchases audit prove: TOPIC/PARTITION, such as received/0, and not \(place)") }
    let wanted: AuditProver.Place
    switch (offset, index) {
    case (let offset?, nil): wanted = .offset(offset)
    case (nil, let index?): wanted = .index(index)
    default: throw UsageError("purchases audit prove: needs one of --offset N and --index N")
    }
    if let folder {
      let archive = try AuditArchive(try DiskFolder(folder, flag: "from"))
      let key = values.text(.vkey) == nil ? archive.key : try AuditKey.verifier(values, deployment)
      return try AuditProver(topics: archive.topics, key: key).prove(
        archive, TopicPartition(archive.topics.name(topic), partition), wanted
      ).text
    }
    let key = try AuditKey.verifier(values, deployment)
    let log = try deployment.openLog()
    defer { log.close() }
    return try AuditProver(topics: deployment.topics, key: key).prove(
      try live(log), TopicPartition(deployment.topics.name(topic), partition), wanted
    ).text
  }

  /// Checks a proof by itself: no log, no store, no folder.
  public func check(_ text: [UInt8]) throws -> InclusionProof.Shown {
    guard text.count <= InclusionProof.maximumBytes, let text = String(validating: text, as: UTF8.self) else {
      throw UsageError("purchases audit check: the file is no proof")
    }
    return try InclusionProof(parsing: text).check(key: try AuditKey.verifier(values, deployment))
  }

  private func live(_ log: any EventLog) throws -> LiveLog { try Self.live(log, deployment) }

  static func live(_ log: any EventLog, _ deployment: Deployment) throws -> LiveLog {
    try LiveLog(
      log, topics: deployment.topics,
      groups: [
        .received: deployment.group(.verification), .parked: deployment.group(.verification),
        .verified: deployment.group(.ownership), .owned: deployment.group(.entitlements),
      ])
  }

  /// The store, unless it is a file that isn't there: an auditor has the log and the key, and needs no more.
  private func existingStore() throws -> (any Store)? {
    if case .sqlite(let path) = deployment.store, !Files.exists(path) { return nil }
    return try deployment.openStore()
  }
}
