import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesEmbeddedLog
import Synchronization

/// A program for tests to kill: it works on an embedded log until a signal ends it, and says on its standard output
/// what the log has acknowledged, one line each, written with one `write` so that no line is ever half there.
///
///     PurchasesLogWriter append LOG TOPIC NAME     publishes NAME-0, NAME-1, ... and prints each acknowledged number
///     PurchasesLogWriter work LOG GROUP INSTANCE SESSION INPUT OUTPUT
///                                                  copies INPUT to OUTPUT, committing records and offsets together
@main struct LogWriterMain {
  static func main() {
    do {
      let arguments = CommandLine.arguments
      guard arguments.count >= 5 else { throw LogFailure(.refused, "usage: append|work LOG ...") }
      let log = try EmbeddedLog(path: arguments[2])
      switch (arguments[1], arguments.count) {
      case ("append", 5): try append(to: log, topic: arguments[3], name: arguments[4])
      case ("work", 8):
        try work(
          on: log,
          settings: WorkerSettings(
            group: arguments[3], topics: [arguments[6]], instance: arguments[4],
            sessionTimeoutMilliseconds: Int64(arguments[5]) ?? WorkerSettings.defaultSessionTimeout),
          output: arguments[7])
      default: throw LogFailure(.refused, "usage: append|work LOG ...")
      }
    } catch {
      say("failed \(error)")
      exit(1)
    }
  }

  static func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
  }

  /// Batches of changing size, several of them on their way at once, so that a kill can hit any moment of a commit.
  static func append(to log: EmbeddedLog, topic: String, name: String) throws {
    let producer = try log.producer()
    let open = Atomic<Int>(0)
    var number = 0
    var size = 1
    while true {
      let numbers = number..<number + size
      let records = numbers.map { number in
        ProducedRecord(
          topic: topic,
          record: Record(
            key: Array("\(name)/\(number % 7)".utf8), value: Array("\(name)-\(number)".utf8),
            headers: [Header("number", "\(number)")], timestamp: Instant(milliseconds: Int64(number))))
      }
      open.add(1, ordering: .sequentiallyConsistent)
      producer.publish(records) { results in
        for (number, result) in zip(numbers, results) {
          switch result {
          case .success: say("\(number)")
          case .failure(let failure): say("failed \(failure)")
          }
        }
        open.subtract(1, ordering: .sequentiallyConsistent)
      }
      while open.load(ordering: .sequentiallyConsistent) > 4 { sched_yield() }
      number += size
      size = size * 7 % 23
    }
  }

  static func work(on log: EmbeddedLog, settings: WorkerSettings, output: String) throws {
    let worker = try log.worker(settings)
    while true {
      let polled = try worker.poll(max: 50, waitMilliseconds: 20)
      switch polled {
      case .assigned(let partitions):
        let committed = try worker.committed(partitions)
        try worker.start(committed.mapValues { $0 ?? 0 })
        say("assigned \(partitions.count)")
      case .revoked(let partitions, let lost):
        try worker.release(partitions)
        say(lost ? "lost \(partitions.count)" : "released \(partitions.count)")
      case .idle(let atEnd): say("idle \(atEnd.count)")
      case .records(let records, let membership):
        say("read \(records.count)")
        say(try copy(records, to: output, by: worker, membership) ? "committed \(records.count)" : "stale")
      }
    }
  }

  /// Commits the copies; false when the membership they were read under is over.
  private static func copy(
    _ records: [StoredRecord], to output: String, by worker: any LogWorker, _ membership: Membership
  ) throws -> Bool {
    var offsets: [TopicPartition: Int64] = [:]
    for stored in records { offsets[stored.coordinates.topicPartition] = stored.coordinates.offset + 1 }
    let copies = records.map { ProducedRecord(topic: output, record: $0.record) }
    do throws(LogFailure) {
      try worker.commit(copies, offsets: offsets, membership: membership)
      return true
    } catch {
      if error.kind == .stale { return false }
      throw error
    }
  }
}
