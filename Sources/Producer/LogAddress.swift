import PurchasesContracts
import PurchasesEmbeddedLog
import PurchasesKafkaLog

/// Where the log is: `kafka://HOST:PORT,HOST:PORT` or `sqlite:PATH`.
struct LogAddress: Sendable {
  private enum Place: Sendable {
    case kafka(String)
    case file(String)
  }

  private let place: Place

  init(_ text: String) throws(ProducerError) {
    if let servers = Self.rest(of: text, after: "kafka://") {
      guard !servers.isEmpty else { throw .address(reason: "kafka:// names no server") }
      place = .kafka(text)
    } else if let path = Self.rest(of: text, after: "sqlite:") {
      guard !path.isEmpty else { throw .address(reason: "sqlite: names no file") }
      place = .file(path)
    } else {
      throw .address(reason: "must begin with kafka:// or sqlite:")
    }
  }

  /// Blocks: Kafka is connected to, the file is opened.
  func open(_ settings: [String: String]) throws(LogFailure) -> any EventLog {
    switch place {
    case .kafka(let url): try KafkaLog(url: url, settings: settings)
    case .file(let path): try EmbeddedLog(path: path)
    }
  }

  private static func rest(of text: String, after scheme: String) -> String? {
    text.hasPrefix(scheme) ? String(text.dropFirst(scheme.count)) : nil
  }
}
