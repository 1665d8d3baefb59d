/// Something at Apple's servers, or in what we send them, that a person should look at.
public struct StoreAlarm: Sendable, Hashable, CustomStringConvertible {
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    /// A success by its status with a body that is none: a web page, half of a JSON document, an empty object.
    case unusableBody = "unusable-body"
    /// A redirect. It is never followed: what we send holds a secret.
    case redirected
    /// So many failures in a row that nobody calls any more for a while.
    case outage
    /// Apple doesn't take the shared secret, or the API key.
    case credentials
    /// Apple says that our request is wrong.
    case ourFault = "our-fault"
    /// A status that we don't know.
    case unknownStatus = "unknown-status"
    /// Production and sandbox each say that the receipt is the other's, or an answer names the wrong one.
    case contradiction
    /// Apple could not, and says that trying again is of no use.
    case notRetryable = "not-retryable"
    /// More calls than Apple allows.
    case rateLimited = "rate-limited"
  }

  public let kind: Kind
  /// Host and kind of call; never a secret, a receipt or an identifier.
  public let place: String
  public let detail: String

  public init(_ kind: Kind, _ place: String, _ detail: String) {
    self.kind = kind
    self.place = place
    self.detail = detail
  }

  public var description: String { "\(kind.rawValue) at \(place): \(detail)" }
}

/// Where alarms go. Called from the thread that made the call.
public typealias StoreAlarms = @Sendable (StoreAlarm) -> Void
