import PurchasesContracts
import PurchasesCore
import PurchasesCryptography

/// What the auditing stage is told at the start.
public struct AuditSettings: Sendable {
  public let topics: TopicSettings
  public let names: AuditNames
  public let limits: AuditLimits
  private let key: Ed25519PrivateKey

  /// - Parameter name: names the whole log in its checkpoints, as a transparency log's origin: best a URL without a
  ///   scheme, such as `example.com/purchases`; without spaces and plus signs.
  public init(
    topics: TopicSettings, name: String, key: Ed25519PrivateKey, limits: AuditLimits = AuditLimits()
  ) throws(NoteError) {
    self.topics = topics
    self.key = key
    self.limits = limits
    names = AuditNames(name: name)
    // Refuses a name or a topic prefix that no note can be signed under.
    for topic in Topic.audited {
      _ = try NoteSigner(name: names.origin(of: TopicPartition(topics.name(topic), 0)), key: key)
    }
    _ = try NoteSigner(name: name, key: key)
  }

  /// The public half, as `audit verify` takes it.
  public var verifierKey: NoteVerifier { signer(names.name).verifier }

  /// Signs the head of a tree under the tree's own name, as other tools expect it.
  func signed(origin: String, size: Int64, root: Hash256) -> SignedNote {
    do {
      let head = try Checkpoint(origin: origin, size: UInt64(size), root: root)
      return try head.signed(by: [signer(origin)])
    } catch {
      preconditionFailure("a name that was accepted can't be signed under: \(error.rawValue)")
    }
  }

  private func signer(_ origin: String) -> NoteSigner {
    do { return try NoteSigner(name: origin, key: key) } catch {
      preconditionFailure("a name that was accepted is refused: \(error.rawValue)")
    }
  }
}

/// The names of an audit log's trees: a partition's is called NAME/TOPIC/PARTITION, the log over all partitions
/// NAME/summary/BORN. All are signed by one key, each under its own name.
public struct AuditNames: Sendable, Hashable {
  public let name: String

  public init(name: String) { self.name = name }

  public func origin(of partition: TopicPartition) -> String { "\(name)/\(partition.topic)/\(partition.partition)" }

  /// The log over all partitions that a store began at that time. A partition's tree is the same for whoever computes it;
  /// this one is not, so a store that begins anew begins another log and never contradicts the old one.
  public func summary(born: Instant) -> String { "\(name)/summary/\(born.milliseconds)" }

  /// When a log over all partitions was begun; nil for the name of anything else.
  public func born(of origin: String) -> Instant? {
    guard origin.hasPrefix(name + "/summary/"), let number = Int64(origin.dropFirst(name.count + 9)) else { return nil }
    let born = Instant(milliseconds: number)
    return summary(born: born) == origin ? born : nil
  }

  /// The partition whose tree has this name.
  public func partition(of origin: String) -> TopicPartition? {
    guard origin.hasPrefix(name + "/"), born(of: origin) == nil else { return nil }
    let rest = origin.dropFirst(name.count + 1)
    guard let slash = rest.lastIndex(of: "/"), let number = Int32(rest[rest.index(after: slash)...]) else { return nil }
    let partition = TopicPartition(String(rest[..<slash]), number)
    return self.origin(of: partition) == origin ? partition : nil
  }

  /// The key that signs a tree's checkpoints: the log's own key under the tree's name.
  public func verifier(of origin: String, _ key: NoteVerifier) -> NoteVerifier? {
    try? NoteVerifier(name: origin, publicKey: key.publicKey)
  }
}

/// When auditing speaks up. All in log time.
public struct AuditLimits: Sendable, Hashable {
  /// A checkpoint after so many leaves: under load one in some seconds, and a reader of the checkpoints never has to
  /// hash more than this to catch up.
  public var leavesPerCheckpoint: Int64 = 10_000
  /// A checkpoint once log time has moved on so far: what is younger is not yet signed for.
  public var millisecondsPerCheckpoint: Int64 = 10_000
  /// A partition that has been quiet so long is signed for as it stands.
  public var quietMilliseconds: Int64 = 1_000
  /// A purchase is granted within seconds; an hour is beyond what a slow App Store or a restart explains.
  public var grantWithinMilliseconds: Int64 = 3_600_000
  /// Clients finish at once or when they are next opened; a week covers a phone that lay in a drawer.
  public var finishWithinMilliseconds: Int64 = 7 * 86_400_000
  /// A permit travels through four topics; the report that the client acted on it may be read earlier. An hour, as for
  /// the grant.
  public var permitWithinMilliseconds: Int64 = 3_600_000
  /// Watch rows looked at in one go: bounds the memory and the transaction, the rest comes right after.
  public var rowsPerLook = 500

  public init() {}
}
