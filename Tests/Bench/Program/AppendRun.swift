import Dispatch
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog
import PurchasesSQLite
import Synchronization

/// Records of 1 KB appended to a new embedded log, and the same bytes inserted into a plain table of SQLite.
struct AppendRun {
  let path: String
  let records: [ProducedRecord]

  static let valueBytes = 1024
  /// Records per transaction, on both sides.
  static let batch = 1_000
  /// Calls of the producer under way at once: enough that its thread never waits for us.
  private static let window = 4

  init(path: String, count: Int) {
    self.path = path
    let value = (0..<Self.valueBytes).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    records = (0..<count).map { index in
      ProducedRecord(
        topic: "appended",
        record: Record(
          key: Array("Production/\(2_000_000 + index % 5_000)".utf8), value: value,
          headers: [
            Header("ce_id", "0123456789abcdef0123456789abcdef\(index)"), Header("ce_specversion", "1.0"),
            Header("ce_type", "purchases.payment.purchased.v1"), Header("ce_source", "/bench"),
            Header("content-type", "application/json"),
          ], timestamp: Day.begin.advanced(byMilliseconds: Int64(index))))
    }
  }

  func embedded() throws -> Sample {
    File.removeDatabase(path)
    let log = try EmbeddedLog(path: path)
    try log.ensure([
      TopicSpec(name: "appended", partitions: 1, replication: 1, isCompacted: false, maximumBytes: 1 << 20)
    ])
    let producer = try log.producer()
    let open = DispatchSemaphore(value: Self.window)
    let failed = Atomic(0)
    let (began, begin) = (Gauge.now, Gauge.cpu)
    for start in stride(from: 0, to: records.count, by: Self.batch) {
      open.wait()
      producer.publish(Array(records[start..<min(records.count, start + Self.batch)])) { results in
        for case .failure in results { failed.add(1, ordering: .relaxed) }
        open.signal()
      }
    }
    for _ in 0..<Self.window { open.wait() }
    let sample = Sample(count: records.count, seconds: Gauge.now - began, cpu: Gauge.cpu - begin)
    for _ in 0..<Self.window { open.signal() }
    _ = producer.close(withinMilliseconds: 10_000)
    log.close()
    File.removeDatabase(path)
    guard failed.load(ordering: .relaxed) == 0 else { throw BenchFailure("the embedded log refused records") }
    return sample
  }

  /// One prepared insert into a table in the order of its row id, with the pragmas that the embedded log has.
  func plain() throws -> Sample {
    File.removeDatabase(path)
    let connection = try SQLiteConnection(
      path: path,
      options: SQLiteOptions(cacheSize: 32 * 1024, memoryMap: 0, automaticCheckpoint: 2_048, pageSize: 16 * 1024))
    try connection.execute(
      """
      CREATE TABLE record (
        "offset" INTEGER PRIMARY KEY, timestamp INTEGER NOT NULL, key BLOB, headers BLOB, value BLOB) STRICT
      """)
    let insert = try connection.prepare("INSERT INTO record VALUES (?, ?, ?, ?, ?)")
    let headers = records.map { Self.packed($0.record.headers) }
    let (began, begin) = (Gauge.now, Gauge.cpu)
    for start in stride(from: 0, to: records.count, by: Self.batch) {
      try connection.transaction(.immediate) {
        for index in start..<min(records.count, start + Self.batch) {
          let record = records[index].record
          try insert.bind(1, Int64(index))
          try insert.bind(2, record.timestamp.milliseconds)
          try insert.run(borrowing: record.key, headers[index], record.value, from: 3)
        }
      }
    }
    let sample = Sample(count: records.count, seconds: Gauge.now - began, cpu: Gauge.cpu - begin)
    connection.close()
    File.removeDatabase(path)
    return sample
  }

  private static func packed(_ headers: [Header]) -> [UInt8] {
    var bytes: [UInt8] = []
    for header in headers {
      RecordCodec.append(Array(header.name.utf8), to: &bytes)
      RecordCodec.append(header.value, to: &bytes)
    }
    return bytes
  }
}
