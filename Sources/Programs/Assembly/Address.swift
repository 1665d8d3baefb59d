import PurchasesContracts

/// `HOST:PORT`, such as `127.0.0.1:8080` or `[::1]:0`.
public struct Address: Sendable, Hashable, CustomStringConvertible {
  public let host: String
  public let port: UInt16

  public init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  public init(_ text: String, setting: Setting) throws(UsageError) {
    guard let mark = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: mark)...]) else {
      throw UsageError("--\(setting.name): must be HOST:PORT, such as 127.0.0.1:8080")
    }
    var host = String(text[..<mark])
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    guard !host.isEmpty else { throw UsageError("--\(setting.name): the host is missing") }
    self.init(host: host, port: port)
  }

  public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// Which log, and how to reach it.
public enum LogAddress: Sendable, Hashable {
  case embedded(path: String)
  case kafka(servers: String, settings: [String: String])

  public init(_ text: String, kafka: [String]) throws(UsageError) {
    if text.hasPrefix("sqlite:") {
      let path = String(text.dropFirst("sqlite:".count))
      guard !path.isEmpty else { throw UsageError("--log: sqlite: needs the path of a file") }
      guard kafka.isEmpty else { throw UsageError("--kafka: goes with --log kafka://…, and the log is \(text)") }
      self = .embedded(path: path)
    } else if text.hasPrefix("kafka://") {
      let servers = String(text.dropFirst("kafka://".count))
      guard !servers.isEmpty, !servers.contains("/") else {
        throw UsageError("--log: must be kafka://HOST:PORT,HOST:PORT")
      }
      var settings: [String: String] = [:]
      for pair in kafka {
        guard let mark = pair.firstIndex(of: "="), mark != pair.startIndex else {
          throw UsageError("--kafka: must be NAME=VALUE")
        }
        settings[String(pair[..<mark])] = String(pair[pair.index(after: mark)...])
      }
      self = .kafka(servers: servers, settings: settings)
    } else {
      throw UsageError("--log: must be sqlite:PATH or kafka://HOST:PORT,HOST:PORT")
    }
  }
}

/// Which store, and how to reach it.
public enum StoreAddress: Sendable, Hashable {
  case sqlite(path: String)
  case postgres(url: String)

  public init(_ text: String, setting: Setting = .store) throws(UsageError) {
    if text.hasPrefix("sqlite:") {
      let path = String(text.dropFirst("sqlite:".count))
      guard !path.isEmpty else { throw UsageError("--\(setting.name): sqlite: needs the path of a file") }
      self = .sqlite(path: path)
    } else if text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") {
      self = .postgres(url: text)
    } else {
      throw UsageError("--\(setting.name): must be sqlite:PATH or postgres://…")
    }
  }
}
