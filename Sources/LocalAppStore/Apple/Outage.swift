import Dispatch
import PurchasesHTTPServer
import PurchasesJSON
import Synchronization

/// One way in which Apple's servers have been seen to fail.
public enum Outage: Sendable, Hashable {
  case status(Int)
  /// The connection breaks without an answer.
  case reset
  /// No answer for so many seconds, or until the script is let go of.
  case hang(seconds: Double)
  /// 200 with HTML.
  case webPage
  /// 200 with the first half of a JSON document.
  case truncated
  /// 200 with `{}`.
  case emptyObject
  case redirect(to: String)
  /// 429 with this `Retry-After`.
  case tooManyRequests(retryAfter: String?)
  /// 200 with this `status`, as `verifyReceipt` fails.
  case receiptStatus(Int64, isRetryable: Bool?)
  /// This error code of the Server API, with the HTTP status that it begins with.
  case apiError(Int64)

  /// As people write it: `503`, `reset`, `hang:30`, `html`, `truncated`, `empty`, `302`, `429:SECONDS`, `status:21005`,
  /// `error:5000001`.
  public init?(_ text: String) {
    let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
    let value = parts.count == 2 ? parts[1] : nil
    switch parts.first {
    case "reset" where value == nil: self = .reset
    case "hang": self = .hang(seconds: value.flatMap { Double($0) } ?? 30)
    case "html" where value == nil: self = .webPage
    case "truncated" where value == nil: self = .truncated
    case "empty" where value == nil: self = .emptyObject
    case "302": self = .redirect(to: value ?? "/elsewhere")
    case "429": self = .tooManyRequests(retryAfter: value)
    case "status":
      guard let status = value.flatMap({ Int64($0) }) else { return nil }
      self = .receiptStatus(status, isRetryable: nil)
    case "error":
      guard let code = value.flatMap({ Int64($0) }) else { return nil }
      self = .apiError(code)
    case let name? where value == nil:
      guard let status = Int(name), (400...599).contains(status) else { return nil }
      self = .status(status)
    default: return nil
    }
  }
}

/// Which requests fail, and how: in the order in which it was written.
public final class OutageScript: Sendable {
  private struct Entry {
    let path: String
    let outage: Outage
    var left: Int
  }

  private let entries = Mutex<[Entry]>([])
  private let hanging = Mutex(0)
  private let gate = DispatchSemaphore(value: 0)

  public init() {}

  /// The next `times` requests whose path begins so fail that way. What was added first fails first.
  public func add(_ outage: Outage, times: Int = 1, on path: String = "/") {
    entries.withLock { $0.append(Entry(path: path, outage: outage, left: times)) }
  }

  /// Ends the script, and whatever hangs.
  public func clear() {
    entries.withLock { $0 = [] }
    let waiting = hanging.withLock { $0 }
    for _ in 0..<waiting { gate.signal() }
  }

  /// What is to happen to this request; it is crossed off. Nil: all is well.
  func next(_ path: String) -> Outage? {
    entries.withLock { entries in
      guard let index = entries.firstIndex(where: { path.hasPrefix($0.path) }) else { return nil }
      let outage = entries[index].outage
      entries[index].left -= 1
      if entries[index].left <= 0 { entries.remove(at: index) }
      return outage
    }
  }

  /// Plays an outage; `well` is what the answer would have been.
  func play(_ outage: Outage, well: () -> HTTPResponse) -> HTTPResponse {
    switch outage {
    case .status(let status): return HTTPResponse(status: status, contentType: "text/plain", body: Array("down\n".utf8))
    case .reset: return .noAnswer
    case .hang(let seconds):
      hanging.withLock { $0 += 1 }
      defer { hanging.withLock { $0 -= 1 } }
      _ = gate.wait(timeout: .now() + seconds)
      return .noAnswer
    case .webPage:
      return HTTPResponse(
        status: 200, contentType: "text/html",
        body: Array("<html><body>The store will be back soon.</body></html>".utf8))
    case .truncated:
      let whole = well().body
      // Whatever was asked, half of it is no document.
      let half = whole.count > 1 ? Array(whole.prefix(whole.count / 2)) : Array(#"{"status":"#.utf8)
      return HTTPResponse(status: 200, contentType: "application/json", body: half)
    case .emptyObject: return HTTPResponse(status: 200, contentType: "application/json", body: Array("{}".utf8))
    case .redirect(let target):
      return HTTPResponse(status: 302, headers: HTTPHeaders([.init(name: "location", value: target)]))
    case .tooManyRequests(let retryAfter):
      var response = AppleAnswer.error(4_290_000, "Rate limit exceeded.")
      if let retryAfter { response.headers.add("retry-after", retryAfter) }
      return response
    case .receiptStatus(let status, let isRetryable):
      return AppleAnswer.json(200) { json in
        json.field("status", status)
        json.field("is_retryable", isRetryable)
      }
    case .apiError(let code): return AppleAnswer.error(code, "Scripted.")
    }
  }
}

/// Answers in Apple's form.
enum AppleAnswer {
  static func json(_ status: Int, _ body: (inout JSONWriter) -> Void) -> HTTPResponse {
    var writer = JSONWriter()
    writer.object(body)
    return HTTPResponse(status: status, contentType: "application/json", body: writer.bytes)
  }

  /// An error of the Server API: the code's first three digits are the HTTP status.
  static func error(_ code: Int64, _ message: String) -> HTTPResponse {
    json(Int(code / 10_000)) { json in
      json.field("errorCode", code)
      json.field("errorMessage", message)
    }
  }

  static let empty = HTTPResponse(status: 200, contentType: "application/json", body: [])
}
