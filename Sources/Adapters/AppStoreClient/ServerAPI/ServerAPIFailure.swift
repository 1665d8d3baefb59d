import PurchasesCore

/// Why a call of the App Store Server API came to nothing. Holds neither token nor key, and nothing of what was asked.
public enum ServerAPIFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// Apple says no, and why; `code` is nil where the body named none.
  case refused(status: Int, ServerAPICode?)
  /// 401: the token is not Apple's to take. Wrong key, issuer, bundle id or clock, or an app that production doesn't know.
  case unauthorized
  /// More calls than Apple allows, or than are allowed for now; no call before then.
  case rateLimited(until: Instant)
  /// Apple's side fails; not before then, where it says.
  case unavailable(status: Int, ServerAPICode?, until: Instant?)
  case unreachable(String)
  /// Nobody called: too many failures just before.
  case paused(until: Instant)
  case redirected(status: Int)
  /// A success that holds nothing of what it must.
  case unusableBody(String)
  /// What was to be sent is not what Apple takes; nothing was sent.
  case notSendable(String)

  /// Whether the same call may succeed later.
  public var isRetryable: Bool {
    switch self {
    case .refused(_, let code): code?.isRetryable ?? false
    case .unauthorized, .notSendable: false
    case .rateLimited, .unavailable, .unreachable, .paused, .redirected, .unusableBody: true
    }
  }

  /// Before this there is no use in calling again.
  public var notBefore: Instant? {
    switch self {
    case .rateLimited(let until), .paused(let until): until
    case .unavailable(_, _, let until): until
    default: nil
    }
  }

  public var code: ServerAPICode? {
    switch self {
    case .refused(_, let code), .unavailable(_, let code, _): code
    default: nil
    }
  }

  public var description: String {
    switch self {
    case .refused(let status, let code):
      "Apple refuses (HTTP \(status)\(code.map { ", error \($0)" } ?? ""))"
    case .unauthorized:
      "Apple does not take the token (HTTP 401): check issuer id, key id, key, bundle id and this machine's clock; "
        + "production also answers so for an app that it has not released"
    case .rateLimited(let until): "more calls than Apple allows: the next may go at \(until)"
    case .unavailable(let status, let code, let until):
      "Apple can't answer (HTTP \(status)\(code.map { ", error \($0)" } ?? ""))"
        + (until.map { "; it asks not to call before \($0)" } ?? "")
    case .unreachable(let reason): "no answer from Apple: \(reason)"
    case .paused(let until): "too many failures in a row: the next call goes at \(until)"
    case .redirected(let status): "a redirect (HTTP \(status)), which is never followed"
    case .unusableBody(let reason): "an answer without use: \(reason)"
    case .notSendable(let reason): "can't be sent: \(reason)"
    }
  }
}
