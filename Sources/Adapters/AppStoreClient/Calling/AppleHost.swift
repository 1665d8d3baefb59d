import PurchasesCore

/// Where one of Apple's servers is: a URL without a path. Secrets go there, so it is https, or this machine.
public struct AppleHost: Sendable, Hashable, CustomStringConvertible {
  public let url: String

  /// - Throws: when the text isn't such a URL.
  public init(_ text: String) throws(AppleHostFailure) {
    let isSecure = text.hasPrefix("https://")
    guard isSecure || text.hasPrefix("http://") else { throw .notHTTP }
    let scheme = isSecure ? "https://" : "http://"
    var rest = text.dropFirst(scheme.count)
    if rest.hasSuffix("/") { rest = rest.dropLast() }
    guard !rest.isEmpty, rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
      !rest.contains(where: { "/?#@".contains($0) })
    else { throw .notAHost }
    guard isSecure || Self.isThisMachine(rest) else { throw .inTheClear }
    url = scheme + rest
  }

  private init(known: String) { url = known }

  private static func isThisMachine(_ rest: Substring) -> Bool {
    if rest.hasPrefix("[::1]") { return rest.count == 5 || rest.dropFirst(5).first == ":" }
    let name = rest.prefix { $0 != ":" }
    return name == "localhost" || name == "127.0.0.1"
  }

  public var description: String { url }

  // Apple's hosts as of App Store Server API 1.23; the older api.storekit.itunes.apple.com still answers.
  public static let serverAPI = AppleHost(known: "https://api.storekit.apple.com")
  public static let sandboxServerAPI = AppleHost(known: "https://api.storekit-sandbox.apple.com")
  public static let verifyReceipt = AppleHost(known: "https://buy.itunes.apple.com")
  public static let sandboxVerifyReceipt = AppleHost(known: "https://sandbox.itunes.apple.com")
}

/// Why a text is no host that a secret may be sent to.
public enum AppleHostFailure: Error, Sendable, Hashable, CustomStringConvertible {
  case notHTTP
  case notAHost
  case inTheClear

  public var description: String {
    switch self {
    case .notHTTP: "must begin with https://"
    case .notAHost: "must be a host and perhaps a port, without user, path or query"
    case .inTheClear: "must be https: a secret is sent there (http is only taken for this machine)"
    }
  }
}

/// Apple's two worlds. Each has servers of its own.
public enum AppleSide: String, Sendable, Hashable, CaseIterable {
  case production
  case sandbox

  public var other: AppleSide { self == .production ? .sandbox : .production }
  public var environment: Environment { self == .production ? .production : .sandbox }

  /// Nil for what Apple's servers know nothing of: Xcode and local testing.
  public init?(_ environment: Environment) {
    switch environment {
    case .production: self = .production
    case .sandbox: self = .sandbox
    case .xcode, .localTesting: return nil
    }
  }
}

/// One value for each side.
public struct BothSides<Value: Sendable>: Sendable {
  public var production: Value
  public var sandbox: Value

  public init(production: Value, sandbox: Value) {
    self.production = production
    self.sandbox = sandbox
  }

  public subscript(_ side: AppleSide) -> Value { side == .production ? production : sandbox }
}
