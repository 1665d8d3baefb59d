import PurchasesContracts
import PurchasesCryptography

/// A row of `audit_tile`: 256 leaf hashes, and beside them the offsets at which the broker keeps the records.
struct LeafTile: Sendable, Hashable {
  static let width: Int64 = 256

  let partition: TopicPartition
  let index: Int64
  private(set) var hashes: [UInt8] = []
  private(set) var offsets: [UInt8] = []

  init(_ partition: TopicPartition, index: Int64) {
    self.partition = partition
    self.index = index
    hashes.reserveCapacity(Int(Self.width) * Hash256.byteCount)
    offsets.reserveCapacity(Int(Self.width) * 8)
  }

  static func key(_ partition: TopicPartition, index: Int64) -> RowKey {
    RowKey(.auditTile, [.text(partition.topic), .integer(Int64(partition.partition)), .integer(index)])
  }

  /// nil for a row that doesn't hold so many leaves.
  init?(_ row: Row, _ partition: TopicPartition, index: Int64, count: Int64) {
    guard let hashes = row["hashes"].bytes, let offsets = row["offsets"].bytes,
      hashes.count == Int(count) * Hash256.byteCount, offsets.count == Int(count) * 8
    else { return nil }
    self.init(partition, index: index)
    self.hashes += hashes
    self.offsets += offsets
  }

  var count: Int { offsets.count / 8 }

  var isFull: Bool { count == Int(Self.width) }

  var row: Row { Row(Self.key(partition, index: index), [.bytes(hashes), .bytes(offsets)]) }

  mutating func append(_ hash: Hash256, offset: Int64) {
    hashes += hash.bytes
    withUnsafeBytes(of: offset.bigEndian) { offsets.append(contentsOf: $0) }
  }

  func hash(_ leaf: Int) -> Hash256? {
    Hash256(bytes: Array(hashes[leaf * Hash256.byteCount..<(leaf + 1) * Hash256.byteCount]))
  }

  func offset(_ leaf: Int) -> Int64 {
    offsets[leaf * 8..<leaf * 8 + 8].reduce(0) { $0 << 8 | Int64($1) }
  }
}

/// Leaf hashes of records.
enum LeafHash {
  /// SHA-256 of a zero byte and the record's one binary form, as RFC 6962 hashes a leaf.
  static func of(_ record: Record) -> Hash256 { SHA256.digest(RecordCodec.encode(record, after: 0)) }
}

extension Hash256 {
  static func pack(_ hashes: [Hash256]) -> [UInt8] { hashes.flatMap(\.bytes) }

  static func unpack(_ bytes: [UInt8]) -> [Hash256]? {
    guard bytes.count % byteCount == 0 else { return nil }
    return stride(from: 0, to: bytes.count, by: byteCount).compactMap {
      Hash256(bytes: Array(bytes[$0..<$0 + byteCount]))
    }
  }
}
