import PurchasesContracts
import PurchasesCore
import Synchronization

/// Writes one JSON object a line to standard error. Callers hand in names, counts, coordinates and reasons; never a proof,
/// a token, a key or a body.
public final class Logger: Sendable {
  public enum Level: String, Sendable, CaseIterable, Comparable {
    case debug, info, warning, error

    private var rank: Int { Level.allCases.firstIndex(of: self) ?? 0 }
    public static func < (a: Level, b: Level) -> Bool { a.rank < b.rank }
  }

  private let clock: any Clock
  private let minimum: Level
  private let muted: Set<String>
  private let write: @Sendable ([UInt8]) -> Void
  private let lock = Mutex(())

  /// - Parameter muted: messages that are expected and told elsewhere. An error is never muted.
  public init(
    clock: any Clock, minimum: Level = .info, muted: Set<String> = [],
    write: @escaping @Sendable ([UInt8]) -> Void = { StandardError.write($0) }
  ) {
    self.clock = clock
    self.minimum = minimum
    self.muted = muted
    self.write = write
  }

  public func debug(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { log(.debug, message, fields) }
  public func info(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { log(.info, message, fields) }
  public func warning(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) {
    log(.warning, message, fields)
  }
  public func error(_ message: String, _ fields: KeyValuePairs<String, String> = [:]) { log(.error, message, fields) }

  public func log(_ level: Level, _ message: String, _ fields: KeyValuePairs<String, String>) {
    guard level >= minimum, level == .error || !muted.contains(message) else { return }
    var line =
      "{\"time\":\"\(clock.now().rfc3339)\",\"level\":\"\(level.rawValue)\",\"message\":\(Self.quoted(message))"
    for (name, value) in fields { line += ",\(Self.quoted(name)):\(Self.quoted(value))" }
    line += "}\n"
    let bytes = Array(line.utf8)
    lock.withLock { _ in write(bytes) }
  }

  static func quoted(_ text: String) -> String {
    var out = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": out += "\\\""
      case "\\": out += "\\\\"
      case "\n": out += "\\n"
      default:
        if scalar.value < 0x20 {
          let hex = String(scalar.value, radix: 16)
          out += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
        } else {
          out.unicodeScalars.append(scalar)
        }
      }
    }
    return out + "\""
  }
}
