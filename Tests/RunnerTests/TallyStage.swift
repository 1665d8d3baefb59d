import PurchasesContracts
import PurchasesCore

/// A stage that counts records per key in the table `balance` and answers each with the count: whatever is lost or done
/// twice shows in both places.
struct TallyStage: Stage {
  var name: StageName { .entitlements }
  var inputs: [Topic] { [.owned] }

  static func key(_ record: Incoming) -> RowKey {
    let text = String(decoding: record.stored.record.key ?? [], as: UTF8.self)
    return RowKey(.balance, [.text("Sandbox"), .text(text), .text("tally")])
  }

  func needs(_ record: Incoming, _ facts: any Facts) -> [Need] { [.row(Self.key(record))] }

  func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    let value = String(decoding: record.stored.record.value ?? [], as: UTF8.self)
    if value == "poison" { return [.quarantine(reason: "it is poison", alarm: nil)] }
    if value == "newer" { return [.stop(reason: "it is newer")] }
    let key = Self.key(record)
    let count = (facts.row(key)?["amount"].integer ?? 0) + 1
    return [
      .write(.put(Row(key, [.integer(count)]))),
      .emit(
        Outgoing(
          topic: .entitlements, key: key.values[1].text, type: .creditAdded, data: Array(#"{"count":\#(count)}"#.utf8))),
    ]
  }
}

extension TallyStage {
  /// A value of `due` and an instant is one that the clock brought.
  func dueSince(_ record: Incoming) -> Instant? {
    let value = String(decoding: record.stored.record.value ?? [], as: UTF8.self)
    return value.hasPrefix("due ") ? Int64(value.dropFirst(4)).map { Instant(milliseconds: $0) } : nil
  }
}

/// A stage without state that passes records on, and parks those that say so until the instant they name.
struct PassingStage: Stage {
  var name: StageName { .verification }
  var inputs: [Topic] { [.received, .parked] }

  func decide(_ record: Incoming, _ facts: any Facts, _ moment: Moment) -> [Action] {
    let value = String(decoding: record.stored.record.value ?? [], as: UTF8.self)
    if value.hasPrefix("until "), let at = Int64(value.dropFirst(6)), Instant(milliseconds: at) > moment.now {
      return [.park(until: Instant(milliseconds: at), reason: "its time has not come")]
    }
    let key = String(decoding: record.stored.record.key ?? [], as: UTF8.self)
    return [.emit(Outgoing(topic: .verified, key: key, type: .factNoted, data: record.stored.record.value ?? []))]
  }
}
