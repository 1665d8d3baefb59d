import Synchronization

/// Counters and gauges in the Prometheus text format. Label values are names of ours (stage, topic, reason), never data.
public final class Metrics: Sendable {
  private enum Kind: String { case counter, gauge, summary }

  private struct Family {
    var kind: Kind
    var help: String
    var values: [String: Double] = [:]
  }

  private let families = Mutex<[String: Family]>([:])

  public init() {}

  public func count(_ name: String, _ help: String, _ labels: KeyValuePairs<String, String> = [:], by amount: Int = 1) {
    guard amount != 0 else { return }
    change(name, .counter, help, labels) { $0 += Double(amount) }
  }

  public func set(_ name: String, _ help: String, _ labels: KeyValuePairs<String, String> = [:], to value: Double) {
    change(name, .gauge, help, labels) { $0 = value }
  }

  /// Count and sum of a duration or a size: enough for rates and means.
  public func observe(_ name: String, _ help: String, _ labels: KeyValuePairs<String, String> = [:], _ value: Double) {
    let suffix = Self.text(labels)
    families.withLock { families in
      families[name, default: Family(kind: .summary, help: help)].values["_sum" + suffix, default: 0] += value
      families[name]?.values["_count" + suffix, default: 0] += 1
    }
  }

  public func value(_ name: String, _ labels: KeyValuePairs<String, String> = [:]) -> Double? {
    families.withLock { $0[name]?.values[Self.text(labels)] }
  }

  public var text: String {
    families.withLock { families in
      var out = ""
      for (name, family) in families.sorted(by: { $0.key < $1.key }) {
        out += "# HELP \(name) \(family.help)\n# TYPE \(name) \(family.kind.rawValue)\n"
        for (suffix, value) in family.values.sorted(by: { $0.key < $1.key }) {
          let whole = value == value.rounded() && abs(value) < 1e15
          out += "\(name)\(suffix) \(whole ? String(Int64(value)) : String(value))\n"
        }
      }
      return out
    }
  }

  private func change(
    _ name: String, _ kind: Kind, _ help: String, _ labels: KeyValuePairs<String, String>,
    _ body: (inout Double) -> Void
  ) {
    let suffix = Self.text(labels)
    families.withLock { families in
      body(&families[name, default: Family(kind: kind, help: help)].values[suffix, default: 0])
    }
  }

  private static func text(_ labels: KeyValuePairs<String, String>) -> String {
    guard !labels.isEmpty else { return "" }
    let parts = labels.map { name, value in
      var escaped = ""
      for character in value {
        switch character {
        case "\\": escaped += "\\\\"
        case "\"": escaped += "\\\""
        case "\n": escaped += "\\n"
        default: escaped.append(character)
        }
      }
      return "\(name)=\"\(escaped)\""
    }
    return "{" + parts.joined(separator: ",") + "}"
  }
}
