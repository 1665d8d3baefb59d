/// Header fields in the order they came. Names compare without regard to case.
public struct HTTPHeaders: Sendable, Equatable {
  public struct Field: Sendable, Equatable {
    public let name: String
    public let value: String

    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  public private(set) var fields: [Field]

  public init(_ fields: [Field] = []) {
    self.fields = fields
  }

  /// The first field of that name, or nil.
  public subscript(name: String) -> String? {
    let wanted = name.lowercased()
    return fields.first { $0.name.lowercased() == wanted }?.value
  }

  /// Every field of that name, in order.
  public func all(_ name: String) -> [String] {
    let wanted = name.lowercased()
    return fields.filter { $0.name.lowercased() == wanted }.map(\.value)
  }

  public mutating func add(_ name: String, _ value: String) {
    fields.append(Field(name: name, value: value))
  }
}

/// A whole request: it reaches the handler only when its body has arrived in full and within the limits.
public struct HTTPRequest: Sendable {
  /// As sent, in upper case for every method in use. A HEAD request stays HEAD: the server drops the body of the answer.
  public let method: String
  /// Percent-decoded segments of the path: `/v1/a%2Fb` is `["v1", "a/b"]`, and `/` is `[""]`.
  public let path: [String]
  /// Decoded query items in order; a name without `=` has an empty value.
  public let query: [(name: String, value: String)]
  public let headers: HTTPHeaders
  public let body: [UInt8]

  public init(
    method: String, path: [String], query: [(name: String, value: String)] = [], headers: HTTPHeaders = HTTPHeaders(),
    body: [UInt8] = []
  ) {
    self.method = method
    self.path = path
    self.query = query
    self.headers = headers
    self.body = body
  }

  /// The first query item of that name.
  public func queryValue(_ name: String) -> String? {
    query.first { $0.name == name }?.value
  }

  /// The media type in lower case without its parameters: `application/json; charset=utf-8` is `application/json`.
  public var contentType: String? {
    guard let value = headers["content-type"] else { return nil }
    let bare = value.utf8.prefix { $0 != UInt8(ascii: ";") }
    return String(decoding: bare.filter { $0 != 0x20 && $0 != 0x09 }, as: UTF8.self).lowercased()
  }
}

/// What the handler answers. `content-length`, `date` and `connection` are the server's business.
public struct HTTPResponse: Sendable {
  public var status: Int
  public var headers: HTTPHeaders
  public var body: [UInt8]

  public init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  public init(status: Int, contentType: String, body: [UInt8]) {
    self.init(status: status, headers: HTTPHeaders([.init(name: "content-type", value: contentType)]), body: body)
  }

  /// None at all: the connection is closed without a word, as a server does that dies. For servers that play one.
  public static let noAnswer = HTTPResponse(status: 0)

  /// A plain text answer of one line, for what the server itself refuses.
  static func refusal(_ status: Int, _ reason: String) -> HTTPResponse {
    HTTPResponse(status: status, contentType: "text/plain; charset=utf-8", body: Array((reason + "\n").utf8))
  }
}
