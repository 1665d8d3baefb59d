/// The form in which a store keeps outgoing records: many to a block, so that a batch of thousands is a few rows.
///
/// Each record: its topic, its partition (int32, -1 where the key decides) and the record itself, all as `RecordCodec`
/// writes them. Records follow each other; a block ends with its last record.
public enum OutboxCodec {
  /// Blocks end after the record that brings them to this size: few enough rows to be quick, small enough to be moved whole.
  public static let blockBytes = 1 << 20

  public static func encode(_ records: [ProducedRecord]) -> [[UInt8]] {
    var blocks: [[UInt8]] = []
    var block: [UInt8] = []
    for record in records {
      RecordCodec.append(Array(record.topic.utf8), to: &block)
      RecordCodec.append(record.partition ?? -1, to: &block)
      RecordCodec.append(record.record, to: &block)
      if block.count >= blockBytes {
        blocks.append(block)
        block = []
      }
    }
    if !block.isEmpty { blocks.append(block) }
    return blocks
  }

  /// Appends the records of one block.
  public static func decode(_ block: [UInt8], into records: inout [ProducedRecord]) throws(RecordCodec.Malformed) {
    var offset = 0
    while offset < block.count {
      guard let name = try RecordCodec.string(block, at: &offset), let topic = String(validating: name, as: UTF8.self)
      else { throw RecordCodec.Malformed(offset: offset) }
      let partition: Int32 = try RecordCodec.integer(block, at: &offset)
      let record = try RecordCodec.decode(block, at: &offset)
      records.append(ProducedRecord(topic: topic, partition: partition < 0 ? nil : partition, record: record))
    }
  }
}
