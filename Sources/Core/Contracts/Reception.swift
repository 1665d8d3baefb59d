import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// An event that was taken in, ready for the topic `received`.
public struct Received: Sendable, Hashable {
  public let record: Record
  /// The event's deterministic id: 64 hexadecimal digits.
  public let id: String
  public let type: EventType
  public let key: String
  public let event: ReceivedEvent
  /// SHA-256 of the proof's bytes in hex; nil for an event without one. A permit to finish is asked for by it.
  public let proofDigest: String?
}

/// How an event becomes a record of the topic `received`: the one way for the gateway, `publish`, the producer library
/// and the local App Store, so that the same bytes get the same id and key wherever they come in.
public enum Reception {
  /// A proof of the largest size and a generous rest.
  public static let maximumDataBytes = ReceivedEvent.maximumProofBytes + (1 << 16)

  /// Every type that `received` may hold.
  public static let receivable: Set<EventType> = Set(
    EventType.reported + [.storeNotified, .accessOrdered, .operatorActed])

  /// Checks an event and makes its record. The data's bytes go into the record as they are.
  ///
  /// - Parameters:
  ///   - type: with or without its version (`payment.purchased`, `payment.purchased.v1`).
  ///   - source: who took it in, as CloudEvents has it (a URI reference).
  ///   - now: becomes the record's timestamp, by which proofs are judged ever after.
  ///   - traceparent: carried on if it is well-formed by W3C Trace Context, else left out.
  ///   - allowed: the types that this door takes.
  public static func accept(
    type: String, data: [UInt8], source: String, now: Instant, traceparent: String? = nil,
    allowed: Set<EventType> = receivable
  ) throws(FieldFailure) -> Received {
    try accept(
      type: readType(type, allowed), data: data, source: source, now: now, traceparent: traceparent, allowed: allowed)
  }

  public static func accept(
    type: EventType, data: [UInt8], source: String, now: Instant, traceparent: String? = nil,
    allowed: Set<EventType> = receivable
  ) throws(FieldFailure) -> Received {
    guard allowed.contains(type) else { throw FieldFailure("type", "\(type.rawValue) is not taken here") }
    guard data.count <= maximumDataBytes else {
      throw FieldFailure("event", "is longer than \(maximumDataBytes) bytes")
    }
    let document: JSONDocument
    do { document = try JSONDocument(parsing: data) } catch {
      throw FieldFailure("event", "is not JSON (byte \(error.offset): \(error.reason))")
    }
    // Of two members with one name readers take the first or the last: two readers could see two events.
    guard document.firstDuplicateMember() == nil else { throw FieldFailure("event", "has a member twice") }
    let event = try ReceivedEvent(type: type, fields: Fields(document.root))
    return received(event, data: data, source: source, now: now, traceparent: traceparent)
  }

  /// The record of an event that was built from typed values.
  public static func accept(
    _ event: ReceivedEvent, source: String, now: Instant, traceparent: String? = nil
  ) throws(FieldFailure) -> Received {
    try accept(type: event.type, data: event.data, source: source, now: now, traceparent: traceparent)
  }

  private static func received(
    _ event: ReceivedEvent, data: [UInt8], source: String, now: Instant, traceparent: String?
  ) -> Received {
    let proof = event.proof.map { Array($0.utf8) }
    let digest = proof.map { SHA256.digest($0).hex }
    let peek = proof.map { ProofPeek(of: $0) }
    let id = identity(of: event, proof: proof, peek: peek)
    let key = key(of: event, id: id, proofDigest: digest, peek: peek)
    let envelope = Envelope(
      id: id, source: source, type: event.type, subject: subject(of: event, peek: peek)?.text, time: now,
      traceparent: traceparent.flatMap { valid(traceparent: $0) })
    let record = Record(key: Array(key.utf8), value: data, headers: envelope.headers, timestamp: now)
    return Received(record: record, id: id, type: event.type, key: key, event: event, proofDigest: digest)
  }

  private static func readType(_ text: String, _ allowed: Set<EventType>) throws(FieldFailure) -> EventType {
    if let type = EventType(rawValue: text) { return type }
    switch EventType.read(text) {
    case .known(let type, _): return type
    case .newer(let type, let version):
      throw FieldFailure("type", "\(type.rawValue) in version \(version) is newer than this program (\(type.version))")
    case .unknown:
      throw FieldFailure(
        "type", "must be one of " + EventType.allCases.filter(allowed.contains).map(\.rawValue).joined(separator: ", "))
    }
  }

  /// `00-<32 hex>-<16 hex>-<2 hex>` in lower case, neither id all zeroes; W3C says to drop any other.
  static func valid(traceparent text: String) -> String? {
    let parts = text.utf8.split(separator: 0x2d, omittingEmptySubsequences: false)
    guard parts.count == 4, parts.map(\.count) == [2, 32, 16, 2] else { return nil }
    for part in parts {
      guard part.allSatisfy({ ($0 >= 48 && $0 <= 57) || ($0 >= 97 && $0 <= 102) }) else { return nil }
    }
    guard parts[1].contains(where: { $0 != 48 }), parts[2].contains(where: { $0 != 48 }) else { return nil }
    return text
  }
}
