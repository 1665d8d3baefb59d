import CPurchasesKafka
import Glibc

/// The records of a partition that are there for read-committed readers: `start ..< end`.
public struct PartitionBounds: Hashable, Sendable {
  /// The first offset still kept. Above 0: earlier records were deleted.
  public let start: Int64
  /// The offset after the last record of a finished transaction (the last stable offset).
  public let end: Int64
  /// The offset after the last record, those of open and aborted transactions included.
  public let written: Int64
}

/// A request that was made and not answered yet.
struct Question {
  let doing: String
  let queue: OpaquePointer
  let milliseconds: Int32
}

extension Client {
  /// Makes one request of the admin API and waits for its answer, which the caller must destroy.
  func ask(
    _ doing: String, _ kind: rd_kafka_admin_op_t, _ milliseconds: Int32, committed: Bool = false,
    _ request: (_ options: OpaquePointer, _ queue: OpaquePointer) -> Void
  ) throws(KafkaError) -> OpaquePointer {
    try answer(pose(doing, kind, milliseconds, committed: committed, request))
  }

  /// Makes one request of the admin API. `answer` must follow.
  private func pose(
    _ doing: String, _ kind: rd_kafka_admin_op_t, _ milliseconds: Int32, committed: Bool,
    _ request: (_ options: OpaquePointer, _ queue: OpaquePointer) -> Void
  ) -> Question {
    guard let options = rd_kafka_AdminOptions_new(pointer, kind), let queue = rd_kafka_queue_new(pointer) else {
      preconditionFailure("librdkafka is out of memory")
    }
    defer { rd_kafka_AdminOptions_destroy(options) }
    var text = [CChar](repeating: 0, count: Client.errorTextSize)
    // None of these can fail for the kinds of requests made here.
    rd_kafka_AdminOptions_set_request_timeout(options, max(1, milliseconds), &text, text.count)
    if kind == RD_KAFKA_ADMIN_OP_CREATETOPICS || kind == RD_KAFKA_ADMIN_OP_DELETETOPICS
      || kind == RD_KAFKA_ADMIN_OP_CREATEPARTITIONS
    {
      // How long the controller waits until the brokers know.
      rd_kafka_AdminOptions_set_operation_timeout(options, max(1, milliseconds), &text, text.count)
    }
    if committed {
      let refused = rd_kafka_AdminOptions_set_isolation_level(options, RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED)
      precondition(refused == nil, "librdkafka must be able to leave out what is not committed")
    }
    request(options, queue)
    return Question(doing: doing, queue: queue, milliseconds: milliseconds)
  }

  private func answer(_ question: Question) throws(KafkaError) -> OpaquePointer {
    defer { rd_kafka_queue_destroy(question.queue) }
    let doing = question.doing
    let deadline = monotonicMilliseconds() + Int64(question.milliseconds) + Client.graceMilliseconds
    while true {
      let left = Int32(max(0, deadline - monotonicMilliseconds()))
      guard let event = rd_kafka_queue_poll(question.queue, min(left, Client.askSliceMilliseconds)) else {
        // A refused log-in shows aside from the call.
        if let refused { throw refused }
        if left == 0 { throw KafkaError(.retriable, .timedOut, "\(doing): no answer in \(question.milliseconds) ms") }
        continue
      }
      let code = rd_kafka_event_error(event)
      if code == RD_KAFKA_RESP_ERR_NO_ERROR {
        clearRefusal()
        return event
      }
      let reason = rd_kafka_event_error_string(event).map { String(cString: $0) } ?? ""
      rd_kafka_event_destroy(event)
      throw explained(
        KafkaError(KafkaError.severity(of: KafkaCode(code)), KafkaCode(code), "\(doing): \(reason)"))
    }
  }

  private static let askSliceMilliseconds: Int32 = 250
  // librdkafka answers its own time-out; this only guards against it not doing so.
  private static let graceMilliseconds: Int64 = 2000

  private var noneLater: Int64 { -1 }

  // A leader answers within milliseconds. What a try leaves unanswered, a slow cluster works off before the next one: so each
  // is longer than the one before, and much longer where no connection broke since somebody answered.
  private static let firstTryMilliseconds: Int64 = 250
  private static let patientTriesMilliseconds: [Int64] = [1_000, 4_000]
  // How long another leader is looked out for before the same one is asked again, and how often.
  private static let lookoutMilliseconds: Int64 = 1_000
  private static let lookMicroseconds: UInt32 = 100_000

  /// Asks the partitions' leaders, again and again within the time. librdkafka asks whoever led when it last heard of it, also
  /// one that is dead: only an answer would correct what it believes. And while a question waits for a broker that refuses
  /// connections, librdkafka 2.8 connects to it without a pause, thousands of times a second. So once a connection broke, a
  /// question gets a short time, and before it is asked again we look who leads.
  private func askLeaders<T>(
    of partitions: some Collection<KafkaPartition>, milliseconds: Int32, _ ask: (Int32) throws(KafkaError) -> T
  ) throws(KafkaError) -> T {
    let deadline = monotonicMilliseconds() + Int64(milliseconds)
    let topics = Set(partitions.map(\.topic))
    var leaders: [KafkaPartition: Int32] = [:]
    var tries = 0
    while true {
      let failure: KafkaError
      let ended = endedConnections
      do throws(KafkaError) {
        let patience = patience(ofTry: tries)
        let answer = try ask(Int32(clamping: max(1, min(deadline - monotonicMilliseconds(), patience))))
        endedWhenAnswered.store(ended, ordering: .relaxed)
        return answer
      } catch {
        guard error.severity == .retriable else { throw error }
        failure = error
      }
      leaders = try newLeaders(of: topics, otherThan: leaders, until: deadline)
      guard monotonicMilliseconds() < deadline else { throw failure }
      tries += 1
    }
  }

  private func patience(ofTry index: Int) -> Int64 {
    guard endedConnections == endedWhenAnswered.load(ordering: .relaxed) else {
      return Client.firstTryMilliseconds * Int64(index + 1)
    }
    return index < Client.patientTriesMilliseconds.count ? Client.patientTriesMilliseconds[index] : .max
  }

  /// Returns as soon as others lead, or when it is time to ask the same ones again.
  private func newLeaders(
    of topics: Set<String>, otherThan known: [KafkaPartition: Int32], until deadline: Int64
  ) throws(KafkaError) -> [KafkaPartition: Int32] {
    let end = min(deadline, monotonicMilliseconds() + Client.lookoutMilliseconds)
    while true {
      var found: [KafkaPartition: Int32] = [:]
      for topic in topics { found.merge(try leaders(of: topic, until: end)) { _, new in new } }
      if found != known, !found.isEmpty, found.values.allSatisfy({ $0 >= 0 }) { return found }
      guard monotonicMilliseconds() < end else { return known }
      usleep(Client.lookMicroseconds)
    }
  }

  /// The brokers that lead a topic's partitions, -1 where none does; nothing where nobody answers. Corrects what librdkafka
  /// believes, too.
  private func leaders(of topic: String, until end: Int64) throws(KafkaError) -> [KafkaPartition: Int32] {
    var metadata: UnsafePointer<rd_kafka_metadata>?
    rd_kafka_metadata(
      pointer, 0, try self.topic(topic).pointer, &metadata, Int32(clamping: max(1, end - monotonicMilliseconds())))
    guard let metadata else { return [:] }
    defer { rd_kafka_metadata_destroy(metadata) }
    var leaders: [KafkaPartition: Int32] = [:]
    for index in 0..<Int(metadata.pointee.topic_cnt) {
      let found = metadata.pointee.topics[index]
      for index in 0..<Int(found.partition_cnt) {
        leaders[KafkaPartition(topic, found.partitions[index].id)] = found.partitions[index].leader
      }
    }
    return leaders
  }

  /// For each partition the first offset at or after a time in milliseconds since 1970 (-1 where there is none), or the
  /// first (-2) or end (-1) offset.
  func listOffsets(
    _ wanted: [KafkaPartition: Int64], committed: Bool, milliseconds: Int32
  ) throws(KafkaError) -> [KafkaPartition: Int64] {
    guard !wanted.isEmpty else { return [:] }
    return try askLeaders(of: wanted.keys, milliseconds: milliseconds) { milliseconds throws(KafkaError) in
      try offsets(poseOffsets(wanted, committed: committed, milliseconds: milliseconds), wanted)
    }
  }

  private func poseOffsets(_ wanted: [KafkaPartition: Int64], committed: Bool, milliseconds: Int32) -> Question {
    let list = PartitionList(wanted)
    return pose("asking for offsets", RD_KAFKA_ADMIN_OP_LISTOFFSETS, milliseconds, committed: committed) {
      options, queue in rd_kafka_ListOffsets(pointer, list.pointer, options, queue)
    }
  }

  private func offsets(
    _ question: Question, _ wanted: [KafkaPartition: Int64]
  ) throws(KafkaError) -> [KafkaPartition: Int64] {
    let event = try answer(question)
    defer { rd_kafka_event_destroy(event) }
    var count = 0
    guard let infos = rd_kafka_ListOffsets_result_infos(rd_kafka_event_ListOffsets_result(event), &count) else {
      return [:]
    }
    var found: [KafkaPartition: Int64] = [:]
    for index in 0..<count {
      guard let element = rd_kafka_ListOffsetsResultInfo_topic_partition(infos[index])?.pointee else { continue }
      let identity = PartitionList.identity(element)
      try KafkaError.check(element.err, "asking for offsets of \(identity)")
      // Seen while a broker was starting or had stalled: no error, and no offset either. Only a time may have none. The
      // partition is there: a code that said it is not would end for good whoever asks.
      let isTime = (wanted[identity] ?? 0) >= 0
      guard element.offset >= 0 || (isTime && element.offset == noneLater) else {
        throw KafkaError(.retriable, .timedOut, "asking for offsets of \(identity): the answer holds none")
      }
      found[identity] = element.offset
    }
    return found
  }

  func bounds(
    _ partitions: [KafkaPartition], milliseconds: Int32
  ) throws(KafkaError) -> [KafkaPartition: PartitionBounds] {
    guard !partitions.isEmpty else { return [:] }
    return try askLeaders(of: partitions, milliseconds: milliseconds) { milliseconds throws(KafkaError) in
      try boundsOnce(partitions, milliseconds: milliseconds)
    }
  }

  /// Three questions asked at once, so that they take the time of one.
  private func boundsOnce(
    _ partitions: [KafkaPartition], milliseconds: Int32
  ) throws(KafkaError) -> [KafkaPartition: PartitionBounds] {
    func wanted(_ what: rd_kafka_OffsetSpec_t) -> [KafkaPartition: Int64] {
      Dictionary(partitions.map { ($0, Int64(what.rawValue)) }, uniquingKeysWith: { a, _ in a })
    }
    let first = wanted(RD_KAFKA_OFFSET_SPEC_EARLIEST)
    let last = wanted(RD_KAFKA_OFFSET_SPEC_LATEST)
    let questions = [
      (poseOffsets(last, committed: false, milliseconds: milliseconds), last),
      (poseOffsets(first, committed: true, milliseconds: milliseconds), first),
      (poseOffsets(last, committed: true, milliseconds: milliseconds), last),
    ]
    // Every question is answered, also after one that failed: the answer frees it.
    var answers: [[KafkaPartition: Int64]] = []
    var failure: KafkaError?
    for (question, wanted) in questions {
      do throws(KafkaError) {
        answers.append(try offsets(question, wanted))
      } catch {
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
    var bounds: [KafkaPartition: PartitionBounds] = [:]
    for partition in partitions {
      guard let written = answers[0][partition], let start = answers[1][partition], let end = answers[2][partition]
      else {
        throw KafkaError(.retriable, .timedOut, "asking for offsets of \(partition): no answer for it")
      }
      bounds[partition] = PartitionBounds(start: start, end: max(start, end), written: max(start, end, written))
    }
    return bounds
  }
}
