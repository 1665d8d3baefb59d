import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// One try of Apple's to send a notification.
public struct SendAttempt: Sendable, Hashable {
  public let date: Instant?
  /// `SUCCESS`, `NO_RESPONSE`, `TIMED_OUT`, …
  public let result: String?

  public var succeeded: Bool { result == "SUCCESS" }
}

/// A notification that Apple sent, or tried to.
public struct SentNotification: Sendable, Hashable {
  /// As Apple signed it: the same bytes that it sends.
  public let signedPayload: String
  public let attempts: [SendAttempt]
}

public struct NotificationPage: Sendable, Hashable {
  public let notifications: [SentNotification]
  public let paginationToken: String?
  public let hasMore: Bool
}

/// Which notifications to list.
public struct NotificationFilter: Sendable, Hashable {
  public var from: Instant
  public var to: Instant
  public var type: String?
  public var subtype: String?
  public var transaction: TransactionID?
  /// Only those that Apple could not deliver, or is still at.
  public var onlyFailures = false

  public init(from: Instant, to: Instant) {
    self.from = from
    self.to = to
  }

  var body: [UInt8] {
    var writer = JSONWriter()
    writer.object { json in
      json.field("startDate", from.milliseconds)
      json.field("endDate", to.milliseconds)
      json.field("notificationType", type)
      json.field("notificationSubtype", subtype)
      json.field("transactionId", transaction?.text)
      if onlyFailures { json.field("onlyFailures", true) }
    }
    return writer.bytes
  }
}

extension AppleSide {
  /// How far back Apple's notification history goes: 180 days in production, 30 in the sandbox.
  public var historyMilliseconds: Int64 { (self == .production ? 180 : 30) * 86_400_000 }
}

extension ServerAPI {
  /// A page of the notifications that Apple sent or tried to. `POST /v1/notifications/history`.
  ///
  /// - Parameter paginationToken: of the page before; the filter must be the same.
  public func notificationHistory(
    _ filter: NotificationFilter, paginationToken: String? = nil
  ) throws(ServerAPIFailure) -> NotificationPage {
    guard filter.from < filter.to else { throw .notSendable("the history's start must be before its end") }
    var request = Request("POST", ["v1", "notifications", "history"], .notificationHistory)
    if let paginationToken { request.query = [("paginationToken", paginationToken)] }
    request.body = filter.body
    return try answer(request) { root in
      guard let list = root["notificationHistory"], list.kind == .array else { return nil }
      var notifications: [SentNotification] = []
      for entry in list.elements {
        // An entry without its payload would be a notification lost in silence.
        guard let payload = entry["signedPayload"]?.string else { return nil }
        notifications.append(SentNotification(signedPayload: payload, attempts: Self.attempts(entry)))
      }
      let hasMore = root["hasMore"]?.bool ?? false
      let token = root["paginationToken"]?.string
      guard !hasMore || token != nil else { return nil }
      return NotificationPage(notifications: notifications, paginationToken: token, hasMore: hasMore)
    }
  }

  /// Asks Apple for a notification of type TEST; answers the token to ask for its fate. `POST /v1/notifications/test`.
  public func requestTestNotification() throws(ServerAPIFailure) -> String {
    var request = Request("POST", ["v1", "notifications", "test"], .requestTest)
    // Each call makes a notification.
    request.isRepeatable = false
    return try answer(request) { $0["testNotificationToken"]?.string }
  }

  /// What became of a test notification. `GET /v1/notifications/test/{token}`.
  public func testNotificationStatus(_ token: String) throws(ServerAPIFailure) -> SentNotification {
    guard !token.isEmpty, token.utf8.count <= Self.maximumTokenBytes else {
      throw .notSendable("a test notification's token has 1 to \(Self.maximumTokenBytes) characters")
    }
    return try answer(Request("GET", ["v1", "notifications", "test", token], .testStatus)) { root in
      root["signedPayload"]?.string.map { SentNotification(signedPayload: $0, attempts: Self.attempts(root)) }
    }
  }

  /// Apple's are a UUID and a number of milliseconds.
  static let maximumTokenBytes = 512

  private static func attempts(_ view: JSONView) -> [SendAttempt] {
    (view["sendAttempts"]?.elements ?? []).map { attempt in
      SendAttempt(
        date: attempt["attemptDate"]?.milliseconds.map { Instant(milliseconds: $0) },
        result: attempt["sendAttemptResult"]?.string)
    }
  }
}
