import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesPostgresStore
import PurchasesSQLiteStore

/// A program for tests to kill: it commits one batch after the other to a store, and says the number of each one that the
/// store has acknowledged, one line each, written with one `write` so that no line is ever half there.
///
///     PurchasesStoreWriter PATH|URL
///
/// Batch n moves the position from n - 1 to n, gives twenty rows the text n, inserts one row of its own, and keeps three
/// outgoing records: so the position says what everything else must be.
@main struct StoreWriterMain {
  static func main() {
    do {
      guard CommandLine.arguments.count == 2 else { throw StoreFailure(.refused, "usage: PATH|URL") }
      let place = CommandLine.arguments[1]
      let store: any Store = place.hasPrefix("postgres") ? PostgresStore(url: place) : SQLiteStore(path: place)
      try work(try store.stage("entitlements", group: "killed"))
    } catch {
      say("failed \(error)")
      exit(1)
    }
  }

  static func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
  }

  static func work(_ stage: any StageStore) throws(StoreFailure) {
    let partition = TopicPartition("purchases.owned", 0)
    guard let position = try stage.claim([partition])[partition] else { return }
    var from = position.next
    while true {
      let next = (from ?? 0) + 1
      var writes = (0..<20).map { row in
        Write.put(Row(RowKey(.alias, [.text("Production"), .text("row-\(row)")]), [.text("\(next)")]))
      }
      writes.append(
        .insert(
          Row(
            RowKey(.notification, [.text("Production"), .text("batch-\(next)")]), [.text("digest"), .text("\(next)")])))
      let outgoing = (0..<3).map { index in
        ProducedRecord(
          topic: "purchases.entitlements",
          record: Record(
            key: Array("\(index)".utf8), value: Array("\(next)-\(index)".utf8),
            timestamp: Instant(milliseconds: next)))
      }
      try stage.commit(
        StoreTransaction(
          advances: [
            Advance(partition: partition, epoch: position.epoch, from: from, next: next, outgoing: outgoing)
          ], writes: writes),
        published: [partition: next - 3])
      say("\(next)")
      from = next
    }
  }
}
