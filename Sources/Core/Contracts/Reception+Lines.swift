import PurchasesCore
import PurchasesJSON

extension Reception {
  /// Takes one line of NDJSON: an event's data with its type among the members, such as
  /// `{"type":"payment.failed","environment":"Sandbox",…}`. The data of the record is the line without `type`, compact,
  /// members in their order and numbers as they were written.
  public static func accept(
    line: [UInt8], source: String, now: Instant, allowed: Set<EventType> = receivable
  ) throws(FieldFailure) -> Received {
    guard line.count <= maximumDataBytes else {
      throw FieldFailure("event", "is longer than \(maximumDataBytes) bytes")
    }
    let document: JSONDocument
    do { document = try JSONDocument(parsing: line) } catch {
      throw FieldFailure("event", "is not JSON (byte \(error.offset): \(error.reason))")
    }
    guard document.firstDuplicateMember() == nil else { throw FieldFailure("event", "has a member twice") }
    let fields = try Fields(document.root)
    let type = try fields.requiredText("type")
    return try accept(type: type, data: data(ofLine: document.root), source: source, now: now, allowed: allowed)
  }

  private static func data(ofLine line: JSONView) -> [UInt8] {
    var data = [UInt8(ascii: "{")]
    for member in line.members where member.name != "type" {
      if data.count > 1 { data.append(UInt8(ascii: ",")) }
      data += JSON.string(member.name).bytes
      data.append(UInt8(ascii: ":"))
      data += member.value.text
    }
    data.append(UInt8(ascii: "}"))
    return data
  }
}
