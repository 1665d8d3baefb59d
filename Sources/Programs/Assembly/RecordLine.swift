import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// A record as one line of JSON, for `tail`, exports and judges: what is JSON stays JSON, what is text stays text, and bytes
/// that are neither are given in base64.
public enum RecordLine {
  public static func json(_ stored: StoredRecord) -> [UInt8] {
    var writer = JSONWriter(reserving: 512 + (stored.record.value?.count ?? 0))
    writer.object { json in
      json.field("topic", stored.coordinates.topic)
      json.field("partition", Int64(stored.coordinates.partition))
      json.field("offset", stored.coordinates.offset)
      json.field("timestamp", stored.record.timestamp.rfc3339)
      write("key", stored.record.key, &json)
      json.field(
        "headers",
        array: { json in
          for header in stored.record.headers {
            json.object { json in
              json.field("name", header.name)
              write("value", header.value, &json)
            }
          }
        })
      if let value = stored.record.value, let document = try? JSONDocument(parsing: value) {
        json.field("value", raw: document.root.text)
      } else {
        write("value", stored.record.value, &json)
      }
    }
    return writer.bytes + [0x0a]
  }

  private static func write(_ name: String, _ bytes: [UInt8]?, _ json: inout JSONWriter) {
    guard let bytes else { return json.fieldNamed(name, .null) }
    if let text = String(validating: bytes, as: UTF8.self) {
      json.fieldNamed(name, .string(text))
    } else {
      json.fieldNamed(name + "Base64", .string(Base64.encode(bytes)))
    }
  }
}
