import PurchasesHTTPServer
import PurchasesJSON

/// A response with the counts that go to the metrics.
struct Answer {
  var response: HTTPResponse
  var accepted = 0
  var refused = 0

  init(_ response: HTTPResponse, accepted: Int = 0, refused: Int = 0) {
    self.response = response
    self.accepted = accepted
    self.refused = refused
  }

  static func json(_ status: Int, _ body: (inout JSONWriter) -> Void) -> Answer {
    var writer = JSONWriter()
    writer.object(body)
    var response = HTTPResponse(status: status, contentType: "application/json", body: writer.bytes)
    // Answers speak of one person and one instant.
    response.headers.add("cache-control", "no-store")
    return Answer(response)
  }

  /// RFC 9457, with the field that is wrong where there is one.
  static func problem(_ status: Int, _ title: String, field: String? = nil, reason: String) -> Answer {
    var writer = JSONWriter()
    writer.object { json in
      json.field("type", "about:blank")
      json.field("title", title)
      json.field("status", status)
      json.field("field", field)
      json.field("reason", reason)
    }
    return Answer(HTTPResponse(status: status, contentType: "application/problem+json", body: writer.bytes))
  }

  static func badRequest(field: String? = nil, _ reason: String) -> Answer {
    problem(400, "Bad Request", field: field, reason: reason)
  }

  /// The log or the store is down: nothing was accepted, the same request may be sent again.
  static func unavailable(_ reason: String) -> Answer {
    var answer = problem(503, "Service Unavailable", reason: reason)
    answer.response.headers.add("retry-after", String(retryAfterSeconds))
    return answer
  }

  /// Long enough for a broker's election, short enough for a person who waits.
  static let retryAfterSeconds = 5

  static func text(_ status: Int, _ lines: [String]) -> Answer {
    let body = lines.map { $0 + "\n" }.joined()
    return Answer(HTTPResponse(status: status, contentType: "text/plain; charset=utf-8", body: Array(body.utf8)))
  }
}
