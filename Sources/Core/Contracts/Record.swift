import PurchasesCore

public struct Header: Sendable, Hashable {
  public let name: String
  public let value: [UInt8]?

  public init(_ name: String, _ value: [UInt8]?) {
    self.name = name
    self.value = value
  }

  public init(_ name: String, _ value: String) { self.init(name, Array(value.utf8)) }

  public var text: String? { value.flatMap { String(validating: $0, as: UTF8.self) } }
}

/// What a log keeps of a record. Any of key and value may be absent, as in Kafka (a tombstone has no value).
public struct Record: Sendable, Hashable {
  public var key: [UInt8]?
  public var value: [UInt8]?
  public var headers: [Header]
  public var timestamp: Instant

  public init(key: [UInt8]?, value: [UInt8]?, headers: [Header] = [], timestamp: Instant) {
    self.key = key
    self.value = value
    self.headers = headers
    self.timestamp = timestamp
  }

  public func header(_ name: String) -> [UInt8]? { headers.first { $0.name == name }?.value }
  public func headerText(_ name: String) -> String? { headers.first { $0.name == name }?.text }
}

/// A record on its way to a topic. Without a partition, the key decides by the Java client's partitioner.
public struct ProducedRecord: Sendable, Hashable {
  public var topic: String
  public var partition: Int32?
  public var record: Record

  public init(topic: String, partition: Int32? = nil, record: Record) {
    self.topic = topic
    self.partition = partition
    self.record = record
  }
}

/// A record as a log gives it back.
public struct StoredRecord: Sendable, Hashable {
  public let coordinates: Coordinates
  public let record: Record

  public init(coordinates: Coordinates, record: Record) {
    self.coordinates = coordinates
    self.record = record
  }
}

/// The one binary form of a record: the audit leaf is these bytes, the outbox and exports keep records so.
///
/// Integers are big-endian. timestamp (int64 milliseconds) · key · header count (int32) · each header's name and value ·
/// value. A byte string is its length (int32, -1 where absent) and its bytes. Nothing is optional and nothing follows, so
/// that two records with the same bytes are the same record.
public enum RecordCodec {
  public static func encode(_ record: Record) -> [UInt8] { encode(record, after: nil) }

  public static func append(_ record: Record, to out: inout [UInt8]) { out.append(contentsOf: encode(record)) }

  /// The form with one byte before it, such as the mark of an audit leaf.
  ///
  /// Written by address: auditing does this for every record of the log, and appending piece by piece to an array takes
  /// longer than hashing the outcome.
  public static func encode(_ record: Record, after prefix: UInt8?) -> [UInt8] {
    let size = size(of: record) + (prefix == nil ? 0 : 1)
    return [UInt8](unsafeUninitializedCapacity: size) { buffer, initialized in
      var writer = RawWriter(rest: UnsafeMutableRawBufferPointer(buffer))
      if let prefix { writer.put(prefix) }
      writer.put(record.timestamp.milliseconds)
      writer.put(record.key)
      writer.put(Int32(record.headers.count))
      for header in record.headers {
        writer.put(header.name)
        writer.put(header.value)
      }
      writer.put(record.value)
      precondition(writer.rest.isEmpty, "a record's form has the size that was reckoned for it")
      initialized = size
    }
  }

  private static func size(of record: Record) -> Int {
    // 20: the timestamp, the header count and the lengths of key and value.
    var size = 20
    size += record.key?.count ?? 0
    size += record.value?.count ?? 0
    for header in record.headers {
      // 8: the lengths of name and value.
      size += 8
      size += header.name.utf8.count
      size += header.value?.count ?? 0
    }
    return size
  }

  private struct RawWriter {
    var rest: UnsafeMutableRawBufferPointer

    mutating func put<T: FixedWidthInteger>(_ value: T) {
      rest.storeBytes(of: value.bigEndian, as: T.self)
      rest = UnsafeMutableRawBufferPointer(rebasing: rest[(T.bitWidth / 8)...])
    }

    mutating func put(_ value: [UInt8]?) {
      guard let value else { return put(Int32(-1)) }
      put(Int32(value.count))
      value.withUnsafeBytes { put($0) }
    }

    mutating func put(_ text: String) {
      put(Int32(text.utf8.count))
      var text = text
      text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
    }

    private mutating func put(_ bytes: UnsafeRawBufferPointer) {
      rest.copyMemory(from: bytes)
      rest = UnsafeMutableRawBufferPointer(rebasing: rest[bytes.count...])
    }
  }

  public struct Malformed: Error, Sendable, Hashable {
    public let offset: Int
  }

  public static func decode(_ bytes: [UInt8]) throws(Malformed) -> Record {
    var offset = 0
    let record = try decode(bytes, at: &offset)
    guard offset == bytes.count else { throw Malformed(offset: offset) }
    return record
  }

  public static func decode(_ bytes: [UInt8], at offset: inout Int) throws(Malformed) -> Record {
    let timestamp: Int64 = try integer(bytes, at: &offset)
    let key = try string(bytes, at: &offset)
    let count: Int32 = try integer(bytes, at: &offset)
    // Each header takes eight bytes at the least: a count that can't fit is refused before anything is reserved for it.
    guard count >= 0, Int(count) <= (bytes.count - offset) / 8 else { throw Malformed(offset: offset) }
    var headers: [Header] = []
    headers.reserveCapacity(Int(count))
    for _ in 0..<count {
      guard let name = try string(bytes, at: &offset), let text = String(validating: name, as: UTF8.self) else {
        throw Malformed(offset: offset)
      }
      headers.append(Header(text, try string(bytes, at: &offset)))
    }
    let value = try string(bytes, at: &offset)
    return Record(key: key, value: value, headers: headers, timestamp: Instant(milliseconds: timestamp))
  }

  public static func append<T: FixedWidthInteger>(_ value: T, to out: inout [UInt8]) {
    withUnsafeBytes(of: value.bigEndian) { out.append(contentsOf: $0) }
  }

  public static func append(_ value: [UInt8]?, to out: inout [UInt8]) {
    append(value.map { Int32($0.count) } ?? -1, to: &out)
    if let value { out.append(contentsOf: value) }
  }

  public static func integer<T: FixedWidthInteger>(_ bytes: [UInt8], at offset: inout Int) throws(Malformed) -> T {
    let width = T.bitWidth / 8
    guard bytes.count - offset >= width else { throw Malformed(offset: offset) }
    var value: T = 0
    for index in offset..<offset + width { value = (value << 8) | T(truncatingIfNeeded: bytes[index]) }
    offset += width
    return value
  }

  public static func string(_ bytes: [UInt8], at offset: inout Int) throws(Malformed) -> [UInt8]? {
    let count: Int32 = try integer(bytes, at: &offset)
    if count == -1 { return nil }
    guard count >= 0, bytes.count - offset >= Int(count) else { throw Malformed(offset: offset) }
    defer { offset += Int(count) }
    return Array(bytes[offset..<offset + Int(count)])
  }
}

/// Kafka's Java client places a key by murmur2; every producer of ours does the same, so that keys meet wherever they
/// come from.
public enum Partitioner {
  public static func partition(forKey key: [UInt8], of count: Int32) -> Int32 {
    Int32(bitPattern: murmur2(key) & 0x7fff_ffff) % count
  }

  static func murmur2(_ data: [UInt8]) -> UInt32 {
    let m: UInt32 = 0x5bd1_e995
    var h = 0x9747_b28c ^ UInt32(truncatingIfNeeded: data.count)
    var index = 0
    while data.count - index >= 4 {
      var k = UInt32(data[index]) | UInt32(data[index + 1]) << 8 | UInt32(data[index + 2]) << 16
      k |= UInt32(data[index + 3]) << 24
      k = k &* m
      k ^= k >> 24
      h = (h &* m) ^ (k &* m)
      index += 4
    }
    let rest = data.count - index
    if rest > 0 {
      for position in stride(from: rest - 1, through: 0, by: -1) {
        h ^= UInt32(data[index + position]) << (8 * UInt32(position))
      }
      h = h &* m
    }
    h ^= h >> 13
    h = h &* m
    h ^= h >> 15
    return h
  }
}
