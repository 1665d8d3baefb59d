import PurchasesContracts
import PurchasesCore
import PurchasesHTTPServer
import PurchasesJSON

/// The notification history and test notifications.
extension ServerAPIRoutes {
  func notifications(_ request: HTTPRequest, _ now: Instant) -> HTTPResponse {
    guard let body = try? JSON(parsing: request.body) else {
      return AppleAnswer.error(4_000_000, "Bad request.")
    }
    guard let start = body["startDate"]?.int64 else { return AppleAnswer.error(4_000_015, "Invalid start date.") }
    guard let end = body["endDate"]?.int64 else { return AppleAnswer.error(4_000_016, "Invalid end date.") }
    guard start < end else { return AppleAnswer.error(4_000_013, "Start date after end date.") }
    let days: Int64 = environment == .production ? 180 : 30
    guard start >= now.milliseconds - days * 86_400_000 else {
      return AppleAnswer.error(4_000_012, "Start date too far in past.")
    }
    let type = body["notificationType"]?.string
    let transaction = body["transactionId"]?.string
    guard type == nil || transaction == nil else { return AppleAnswer.error(4_000_019, "Multiple filters supplied.") }
    let subtype = body["notificationSubtype"]?.string
    let onlyFailures = body["onlyFailures"]?.bool ?? false
    let all: [AppleBooks.Sent] = books.read(environment) { side in
      side.sent.filter { sent in
        (start..<end).contains(sent.at.milliseconds) && (type == nil || sent.type == type)
          && (subtype == nil || sent.subtype == subtype)
          && (transaction.map { sent.transactions.contains($0) } ?? true) && !(onlyFailures && sent.isDelivered)
      }
    }
    var first = 0
    if let token = request.queryValue("paginationToken") {
      guard let index = Self.index(token), index <= all.count else {
        return AppleAnswer.error(4_000_014, "Invalid pagination token.")
      }
      first = index
    }
    let page = all[first...].prefix(Self.pageSize)
    let next = first + page.count
    return AppleAnswer.json(200) { json in
      json.field("hasMore", next < all.count)
      if next < all.count { json.field("paginationToken", Self.token(next)) }
      json.field(
        "notificationHistory",
        array: { json in for sent in page { json.object { Self.write(sent, &$0) } } })
    }
  }

  static func write(_ sent: AppleBooks.Sent, _ json: inout JSONWriter) {
    json.field("signedPayload", sent.signed)
    json.field(
      "sendAttempts",
      array: { json in
        for attempt in sent.attempts {
          json.object { json in
            json.field("attemptDate", attempt.at.milliseconds)
            json.field("sendAttemptResult", attempt.result)
          }
        }
      })
  }

  func test(_ bundle: String, _ now: Instant) -> HTTPResponse {
    let number = books.read(environment) { $0.tests.count } + 1
    var random = SeededRandom(seed: UInt64(bitPattern: now.milliseconds), stream: UInt64(number))
    let uuid = random.uuid()
    var writer = JSONWriter()
    writer.object { json in
      json.field("notificationType", "TEST")
      json.field("notificationUUID", uuid)
      json.field(
        "data",
        object: { json in
          json.field("bundleId", bundle)
          json.field("environment", environment.rawValue)
        })
      json.field("version", "2.0")
      json.field("signedDate", now.milliseconds)
    }
    guard (try? books.send(writer.bytes, at: now)) != nil else { return AppleAnswer.error(5_000_000, "Not signed.") }
    let token = "\(uuid)_\(now.milliseconds)"
    books.change(environment) { $0.tests[token] = $0.sent.count - 1 }
    return AppleAnswer.json(200) { $0.field("testNotificationToken", token) }
  }

  func testStatus(_ token: String) -> HTTPResponse {
    let sent: AppleBooks.Sent? = books.read(environment) { side in side.tests[token].map { side.sent[$0] } }
    guard let sent else { return AppleAnswer.error(4_040_008, "Test notification not found.") }
    return AppleAnswer.json(200) { Self.write(sent, &$0) }
  }
}
