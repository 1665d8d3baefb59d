import PurchasesCryptography

extension Envelope {
  /// Ids of derived events: the same source, stage, index, type and key give the same id, on every attempt and in every
  /// replay. The key is in it because one received id can stand for the same proof sent by two accounts.
  public static func derivedID(source: String, stage: String, index: Int, type: EventType, key: String?) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(256)
    for part in [source, stage, String(index), type.rawValue] {
      text += part.utf8
      text.append(UInt8(ascii: "\n"))
    }
    if let key { text += key.utf8 }
    return SHA256.digest(text).hex
  }
}
