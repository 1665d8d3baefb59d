import PurchasesCryptography

extension Envelope {
  /// Ids of derived events: the same source, stage, index, type and key give the same id, on every attempt and in every
  /// replay. The key is in it because one received id can stand for the same proof sent by two accounts.
  public static func derivedID(source: String, stage: String, index: Int, type: EventType, key: String?) -> String {
    SHA256.digest(Array("\(source)\n\(stage)\n\(index)\n\(type.rawValue)\n\(key ?? "")".utf8)).hex
  }
}
