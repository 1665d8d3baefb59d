import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesRunner

/// The topic `catalogue`. Which catalogue decides from when is part of the log, as everything is that decides: a store that is
/// lost is made again by the same catalogues, and the audit log covers them.
public struct CatalogueLog {
  /// A catalogue as it was published.
  struct Publication {
    let event: CataloguePublished
    let at: Instant
  }

  private let log: any EventLog
  private let topics: TopicSettings
  private let clock: any Clock
  private let logger: Logger
  /// Where to read on in the one partition that holds catalogues.
  private var place: (partition: TopicPartition, next: Int64)?
  private var read: [Publication] = []

  public init(_ log: any EventLog, _ deployment: Deployment) {
    self.log = log
    topics = deployment.topics
    clock = deployment.clock
    logger = deployment.logger
  }

  /// Catalogues are few; a page of them is nearly always all.
  private static let page = 100
  private static let closeMilliseconds: Int64 = 10_000

  /// All catalogues in the order of the log, each version once. None in a log that has no such topic: an older program made it.
  mutating func published() throws(any Error) -> [Publication] {
    let topic = topics.name(.catalogue)
    if place == nil {
      let count: Int32
      do throws(LogFailure) { count = try log.partitionCount(of: topic) } catch {
        guard error.kind == .refused else { throw error }
        return []
      }
      let number = Partitioner.partition(forKey: Array(CataloguePublished.key.utf8), of: count)
      let partition = TopicPartition(topic, number)
      place = (partition, try log.bounds(of: topic)[number]?.start ?? 0)
    }
    guard let (partition, start) = place else { return read }
    let reader = try log.reader()
    defer { reader.close() }
    var next = start
    while let last = try page(reader, partition, next) { next = last + 1 }
    place = (partition, next)
    return read
  }

  /// The offset of the last record there was; nil at the end.
  private mutating func page(_ reader: any LogReader, _ partition: TopicPartition, _ next: Int64) throws -> Int64? {
    let records = try reader.read(partition, from: next, max: Self.page)
    for stored in records {
      do {
        let envelope = try Envelope(reading: stored.record)
        let event = try CataloguePublished(type: envelope.type, data: stored.record.value ?? [])
        guard !read.contains(where: { $0.event.catalogue.version == event.catalogue.version }) else { continue }
        read.append(Publication(event: event, at: stored.record.timestamp))
      } catch {
        if let failure = error as? EnvelopeFailure, case .newerVersion = failure {
          throw RunnerFailure.newerEvent("\(stored.coordinates): \(failure)")
        }
        // What can't be read is no catalogue, and the one in force goes on.
        logger.error(
          "a catalogue can't be read", ["record": stored.coordinates.description, "reason": String(describing: error)])
      }
    }
    return records.last?.coordinates.offset
  }

  /// As a history; nil where none was published.
  public mutating func history() throws -> CatalogueHistory? {
    CatalogueHistory(try published().map { (catalogue: $0.event.catalogue, from: $0.event.from) })
  }

  /// Durable when this returns. Another process may have been first with the version: what counts is what is read then.
  func publish(_ event: CataloguePublished) throws {
    let data = event.data
    let envelope = Envelope(
      id: SHA256.digest(Array("\(EventType.cataloguePublished.rawValue)\n".utf8) + data).hex,
      source: "/purchases/catalogue", type: .cataloguePublished, time: clock.now())
    let record = ProducedRecord(
      topic: topics.name(.catalogue),
      record: Record(
        key: Array(CataloguePublished.key.utf8), value: data, headers: envelope.headers, timestamp: clock.now()))
    let producer = try log.producer()
    defer { _ = producer.close(withinMilliseconds: Self.closeMilliseconds) }
    for result in producer.publishAndWait([record]) { _ = try result.get() }
  }
}
