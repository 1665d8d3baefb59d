import PurchasesContracts
import PurchasesCore

/// Bits by offset. Offsets of a broker have gaps, but begin at 0 and rise, so this is an eighth of a byte per record.
struct OffsetBits {
  private var words: [UInt64] = []

  subscript(_ offset: Int64) -> Bool {
    let word = Int(offset >> 6)
    return word < words.count && words[word] >> UInt64(offset & 63) & 1 == 1
  }

  mutating func set(_ offset: Int64) {
    let word = Int(offset >> 6)
    while words.count <= word { words.append(0) }
    words[word] |= 1 << UInt64(offset & 63)
  }

  var count: Int64 { words.reduce(0) { $0 + Int64($1.nonzeroBitCount) } }

  /// The offsets that are set here and not there, in order, until the body answers false.
  func forEach(notIn other: OffsetBits, _ body: (Int64) -> Bool) {
    for (index, word) in words.enumerated() {
      var rest = word & ~(index < other.words.count ? other.words[index] : 0)
      while rest != 0 {
        guard body(Int64(index) << 6 + Int64(rest.trailingZeroBitCount)) else { return }
        rest &= rest - 1
      }
    }
  }
}

/// Which records have their outputs: each output names its source's place, its own index and how many there are.
struct Outputs {
  /// Sets of outputs that are begun and not complete at one time. An input's outputs stand close together; more open ones
  /// than this mean that something is thoroughly wrong, which has been reported then.
  static let maximumOpen = 1 << 20
  /// No stage makes nearly so many events of one record; bounds what a foreign header can ask for.
  static let maximumOffset: Int64 = 1 << 40

  private struct Open {
    var count: Int
    var seen: Set<Int>
  }

  private var present: [TopicPartition: OffsetBits] = [:]
  /// Records that lead to at least one output.
  private var expecting: [TopicPartition: OffsetBits] = [:]
  private var answered: [TopicPartition: OffsetBits] = [:]
  private var open: [Coordinates: Open] = [:]
  private var lost = 0

  /// Takes note of a record, and of what it is an output of.
  mutating func note(_ stored: StoredRecord, of topic: Topic, _ topics: TopicSettings, _ report: inout AuditReport) {
    let partition = stored.coordinates.topicPartition
    present[partition, default: OffsetBits()].set(stored.coordinates.offset)
    if Self.isAnswered(stored.record, topic) {
      expecting[partition, default: OffsetBits()].set(stored.coordinates.offset)
    }
    guard topic != .received, let origin = Envelope.Origin(of: stored.record, in: topic) else { return }
    guard topics.topic(named: origin.coordinates.topic) != nil, origin.coordinates.offset <= Self.maximumOffset,
      origin.index < origin.count
    else {
      return report.add(.outputStray, stored.coordinates.description, "names \(origin.coordinates) as its source")
    }
    let source = origin.coordinates
    if origin.count == 1 { return answer(source) }
    guard answered[source.topicPartition]?[source.offset] != true else { return }
    guard open[source] != nil || open.count < Self.maximumOpen else {
      lost += 1
      return
    }
    open[source, default: Open(count: origin.count, seen: [])].seen.insert(origin.index)
    guard let set = open[source], set.seen.count >= set.count else { return }
    open[source] = nil
    answer(source)
  }

  /// Whether a record always leads to something: everything that came in gets a verdict, waits or goes to quarantine, and a
  /// verified purchase that somebody reported is owned, or waits for its owner. Of others nothing need follow, such as of
  /// a second copy.
  private static func isAnswered(_ record: Record, _ topic: Topic) -> Bool {
    switch topic {
    case .received, .parked: true
    case .verified: WatchSignal.read(record, of: topic)?.signal == .verified
    default: false
    }
  }

  private mutating func answer(_ source: Coordinates) {
    answered[source.topicPartition, default: OffsetBits()].set(source.offset)
  }

  /// Compares sources and outputs, once all records are noted.
  /// - Parameters:
  ///   - workedOff: how far the stage behind each partition had come before anything was read.
  ///   - ends: how far each partition was read, where it may have grown since.
  func judge(
    _ topics: TopicSettings, workedOff: [TopicPartition: Int64], ends: [TopicPartition: Int64],
    _ report: inout AuditReport
  ) {
    for (partition, bits) in answered.sorted(by: { $0.key < $1.key }) {
      bits.forEach(notIn: present[partition] ?? OffsetBits()) { offset in
        if let end = ends[partition], offset >= end { return false }
        report.add(.outputStray, "\(partition)/\(offset)", "has outputs, and is not in the log itself")
        return true
      }
    }
    for (source, set) in open.sorted(by: { $0.key < $1.key }) {
      // Some outputs of `owned` go to the compacted topic, which forgets them.
      guard topics.topic(named: source.topic) != .owned else { continue }
      report.add(.outputsIncomplete, source.description, "has \(set.seen.count) of \(set.count) outputs")
    }
    if lost > 0 { report.add(.outputsIncomplete, "*", "\(lost) more outputs belong to sets that are not complete") }
    for (partition, bits) in expecting.sorted(by: { $0.key < $1.key }) {
      guard let end = workedOff[partition] else { continue }
      bits.forEach(notIn: answered[partition] ?? OffsetBits()) { offset in
        let source = Coordinates(topic: partition.topic, partition: partition.partition, offset: offset)
        if offset >= end {
          report.notWorkedOff += 1
        } else if open[source] == nil {
          report.add(.outputMissing, source.description, "was worked off and has no output")
        }
        return true
      }
    }
  }
}
