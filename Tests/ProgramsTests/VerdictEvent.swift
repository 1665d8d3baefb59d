import PurchasesJSON
import Testing

/// Reads and doctors an event of the topic `verified`, as `purchases tail` prints it.
enum VerdictEvent {
  static func isOfReceipt(_ event: String) -> Bool { event.contains(#""verifier":"purchases-receipt/"#) }

  static func members(_ event: String) throws -> JSON { try JSON(parsing: Array(event.utf8)) }

  static func changed(_ event: String, _ change: (inout JSONObject) -> Void) throws -> String {
    var line = try #require(try members(event).object)
    var data = try #require(line["value"]?.object)
    change(&data)
    line["value"] = .object(data)
    return String(decoding: JSON.object(line).bytes, as: UTF8.self)
  }

  static func evidence(_ event: String, _ change: @escaping (inout JSONObject) -> Void) throws -> String {
    try changed(event) { data in
      guard var evidence = data["evidence"]?.object else { return }
      change(&evidence)
      data["evidence"] = .object(evidence)
    }
  }

  static func fields(_ told: JSONView?) -> [String] {
    told?["differences"]?.elements.compactMap { $0["field"]?.string } ?? []
  }
}
