import PurchasesCore

/// The events of the topic `audit`.
public enum AuditEvent: Sendable, Hashable {
  case checkpointed(AuditCheckpointed)
  case anomaly(AuditAnomaly)
}

/// Data of `audit.checkpointed`: the signed state of one tree.
public struct AuditCheckpointed: Sendable, Hashable {
  public enum Scope: Sendable, Hashable {
    /// The tree over the records of one partition.
    case partition(TopicPartition)
    /// A log over the partitions' checkpoints, which the note names: these are the leaves that it grew by, each the text of one partition's
    /// checkpoint without its signature.
    case summary(added: [String])
  }

  public var scope: Scope
  /// Leaves in the tree.
  public var size: Int64
  /// In hex; the note has it in base64.
  public var root: String
  /// The whole C2SP note: origin, size and root, and the signature.
  public var note: String

  public init(scope: Scope, size: Int64, root: String, note: String) {
    self.scope = scope
    self.size = size
    self.root = root
    self.note = note
  }
}

/// Data of `audit.anomaly.found`.
public struct AuditAnomaly: Sendable, Hashable {
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A client reported a purchase; no permit to finish it came, and it wasn't rejected either.
    case purchasedNeverGranted = "purchased-never-granted"
    /// A client may finish a purchase that it reported, and never said that it had.
    case grantedNeverFinished = "granted-never-finished"
    /// A client finished a transaction that it had no permit for.
    case finishedWithoutGrant = "finished-without-grant"
    /// A topic that only our stages write holds a record that can't be read.
    case unreadableInInternalTopic = "unreadable-in-internal-topic"
    /// Two bodies came under one notification's UUID; the first one counts.
    case contradictingNotification = "contradicting-notification"

    public var severity: Severity { self == .unreadableInInternalTopic ? .highest : .high }
  }

  public enum Severity: String, Sendable, Hashable {
    case high, highest
  }

  public var kind: Kind
  /// The transaction that it is about, if it is about one.
  public var subject: TransactionSubject?
  /// The record that it is about, if it is about one.
  public var coordinates: Coordinates?
  /// When what it is about began, and how long that was ago when the anomaly was found, in log time.
  public var since: Instant
  public var ageMilliseconds: Int64
  /// One sentence for people; no content of the record.
  public var explanation: String

  public init(
    kind: Kind, subject: TransactionSubject? = nil, coordinates: Coordinates? = nil, since: Instant,
    ageMilliseconds: Int64, explanation: String
  ) {
    self.kind = kind
    self.subject = subject
    self.coordinates = coordinates
    self.since = since
    self.ageMilliseconds = ageMilliseconds
    self.explanation = explanation
  }
}
