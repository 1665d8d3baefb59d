import PurchasesContracts
import PurchasesKafka

/// What the worker holds, and where it reads.
extension KafkaWorker {
  private static let seekMilliseconds: Int32 = 5_000

  func committed(_ partitions: [TopicPartition]) throws(LogFailure) -> [TopicPartition: Int64?] {
    if let fenced { throw fenced }
    // A commit of ours of unknown outcome is settled by the new producer, and only then is the answer final.
    _ = try readyProducer()
    do throws(KafkaError) {
      let found = try consumer.committed(
        partitions.map { KafkaPartition($0) }, milliseconds: KafkaLog.askMilliseconds)
      return Dictionary(found.map { (TopicPartition($0.key), $0.value) }, uniquingKeysWith: { a, _ in a })
    } catch {
      throw failure(error)
    }
  }

  func start(_ offsets: [TopicPartition: Int64]) throws(LogFailure) {
    if let fenced { throw fenced }
    let wanted = Dictionary(offsets.map { (KafkaPartition($0.key), $0.value) }, uniquingKeysWith: { a, _ in a })
    if let foreign = wanted.keys.first(where: { !owned.contains($0) }) {
      throw LogFailure(.stale, "\(foreign) is not this worker's")
    }
    for (partition, bounds) in try log.bounds(Array(wanted.keys)) {
      if let lost = KafkaLoss.failure(TopicPartition(partition), wanted[partition] ?? 0, bounds) { throw lost }
    }
    let moved = mustAnswer ? [:] : wanted.filter { positions[$0.key] != nil }
    for (partition, offset) in wanted { positions[partition] = offset }
    paused.subtract(wanted.keys)
    atEnd.subtract(wanted.keys)
    let new = wanted.filter { moved[$0.key] == nil }
    if !moved.isEmpty, !seek(moved) {
      // Not in a state to be moved (still being started): hand it over anew.
      do throws(KafkaError) {
        if consumer.isCooperative { try consumer.release(Array(moved.keys)) }
      } catch {
        throw failure(error)
      }
      return try take(only: wanted)
    }
    if !new.isEmpty { try take(only: new) }
  }

  private func seek(_ offsets: [KafkaPartition: Int64]) -> Bool {
    do throws(KafkaError) {
      try consumer.seek(offsets, milliseconds: KafkaWorker.seekMilliseconds)
      try consumer.resume(Array(offsets.keys))
      return true
    } catch {
      return false
    }
  }

  /// Tells the client what to read, and so answers the group. One that takes its assignment as a whole is told all of it;
  /// one that takes it bit by bit is told the new ones.
  func take(only wanted: [KafkaPartition: Int64] = [:]) throws(LogFailure) {
    mustAnswer = false
    do throws(KafkaError) {
      try consumer.assign(consumer.isCooperative ? wanted : positions)
      if !wanted.isEmpty { try consumer.resume(Array(wanted.keys)) }
      let still = consumer.isCooperative ? [] : Array(paused)
      if !still.isEmpty { try consumer.pause(still) }
    } catch {
      throw failure(error)
    }
  }

  func pause(_ partitions: [TopicPartition]) throws(LogFailure) {
    let known = partitions.map { KafkaPartition($0) }.filter { positions[$0] != nil }
    guard !known.isEmpty else { return }
    paused.formUnion(known)
    do throws(KafkaError) {
      try consumer.pause(known)
    } catch {
      throw failure(error)
    }
  }

  func release(_ partitions: [TopicPartition]) throws(LogFailure) {
    // The group asks once; a second answer would be taken for the answer to its next question.
    guard let asked = leaving?.partitions, asked.isSubset(of: partitions.map { KafkaPartition($0) }) else { return }
    leaving = nil
    forget(Array(asked), membership: !consumer.isCooperative)
    do throws(KafkaError) {
      try consumer.release(Array(asked))
    } catch {
      throw failure(error)
    }
  }
}
