import PurchasesContracts
import PurchasesCore
import PurchasesSQLite

/// How a record lies in its row. Key and value are columns of their own, so that people can read them; the headers share
/// one: for each, name and value as ``RecordCodec`` writes byte strings.
enum RecordRow {
  static let columns = "\"offset\", timestamp, key, headers, value"

  static func encode(_ headers: [Header]) -> [UInt8] {
    guard !headers.isEmpty else { return [] }
    var out: [UInt8] = []
    out.reserveCapacity(headers.reduce(0) { $0 + 8 + $1.name.utf8.count + ($1.value?.count ?? 0) })
    for header in headers {
      RecordCodec.append(Int32(header.name.utf8.count), to: &out)
      out.append(contentsOf: header.name.utf8)
      RecordCodec.append(header.value, to: &out)
    }
    return out
  }

  static func decodeHeaders(_ bytes: [UInt8]) throws(LogFailure) -> [Header] {
    guard !bytes.isEmpty else { return [] }
    var headers: [Header] = []
    var offset = 0
    do {
      while offset < bytes.count {
        guard let name = try RecordCodec.string(bytes, at: &offset), let text = String(validating: name, as: UTF8.self)
        else { throw LogFailure(.corrupt, "a header without a readable name") }
        headers.append(Header(text, try RecordCodec.string(bytes, at: &offset)))
      }
    } catch let failure as LogFailure {
      throw failure
    } catch {
      throw LogFailure(.corrupt, "headers that break off")
    }
    return headers
  }

  /// The record of the current row of a statement that selects ``columns``.
  static func read(_ statement: SQLiteStatement, of partition: TopicPartition) throws(LogFailure) -> StoredRecord {
    let record = Record(
      key: statement.optionalBytes(2), value: statement.optionalBytes(4),
      headers: try decodeHeaders(statement.bytes(3)), timestamp: Instant(milliseconds: statement.int64(1)))
    return StoredRecord(
      coordinates: Coordinates(topic: partition.topic, partition: partition.partition, offset: statement.int64(0)),
      record: record)
  }

  /// What counts against a topic's limit and against the bounds of queues and batches.
  static func size(_ record: Record) -> Int {
    var size = (record.key?.count ?? 0) + (record.value?.count ?? 0)
    for header in record.headers { size += header.name.utf8.count + (header.value?.count ?? 0) }
    return size
  }
}
