import PurchasesAppStoreClient
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesRunner

/// Finds notifications that Apple sent and the log never got, and puts them there: what `purchases backfill` does.
///
/// A notification is what its bytes are. Those that came in live and those that are fetched now have one event id, so a second
/// backfill finds nothing to do, and one that runs beside live traffic does no harm.
public struct Backfill {
  public struct Outcome: Sendable, Hashable {
    /// The stretch that was asked for, and what of it Apple still keeps.
    public var asked: (from: Instant, to: Instant)
    public var from: Instant
    public var to: Instant
    /// Different notifications that Apple lists.
    public var listed = 0
    /// Of these, those that were on the log before.
    public var present = 0
    /// Put on the log now; in a dry run, those that would be.
    public var published = 0
    /// Too large for an event, or refused by the log.
    public var refused = 0
    /// Of those listed, the ones that Apple never got an answer for.
    public var undelivered = 0
    /// Whether Apple's list was read to its end.
    public var isWhole = false

    /// The part of Apple's list that was on the log before, 0 to 1.
    public var completenessBefore: Double { listed == 0 ? 1 : Double(present) / Double(listed) }
    /// The part of it that is on the log now.
    public var completeness: Double { listed == 0 ? 1 : Double(present + published) / Double(listed) }
    /// Whether Apple keeps less than was asked for.
    public var isCut: Bool { from > asked.from }

    init(asked: (from: Instant, to: Instant), from: Instant, to: Instant) {
      self.asked = asked
      self.from = from
      self.to = to
    }

    public static func == (a: Outcome, b: Outcome) -> Bool {
      a.asked == b.asked && a.from == b.from && a.to == b.to && a.listed == b.listed && a.present == b.present
        && a.published == b.published && a.refused == b.refused && a.undelivered == b.undelivered
        && a.isWhole == b.isWhole
    }

    public func hash(into hasher: inout Hasher) {
      hasher.combine(from)
      hasher.combine(to)
      hasher.combine(listed)
      hasher.combine(present)
      hasher.combine(published)
    }
  }

  /// Apple counts its days by its own clock; so much earlier than its bound is not asked for.
  public static let margin: Int64 = 60_000
  /// A notification may be on the log a little before the date that Apple's history has for it: clocks differ.
  static let earlier: Int64 = 86_400_000
  /// Stretches that are listed by themselves: a token that runs out in mid-list costs one of them and not all.
  static let stretch: Int64 = 7 * 86_400_000
  /// How often a stretch whose token ran out is begun again.
  static let maximumRestarts = 3
  static let pageRecords = 500

  /// Half of a digest: two notifications agree in it by chance once in 2^64 pairs.
  private struct Print: Hashable {
    let high: UInt64
    let low: UInt64

    init(_ payload: String) {
      var words: (UInt64, UInt64) = (0, 0)
      for (index, byte) in SHA256.digest(payload).bytes.prefix(16).enumerated() {
        if index < 8 { words.0 = words.0 << 8 | UInt64(byte) } else { words.1 = words.1 << 8 | UInt64(byte) }
      }
      (high, low) = words
    }
  }

  private let api: ServerAPI
  private let log: any EventLog
  private let topics: TopicSettings
  private let clock: any Clock

  public init(api: ServerAPI, log: any EventLog, topics: TopicSettings, clock: any Clock) {
    self.api = api
    self.log = log
    self.topics = topics
    self.clock = clock
  }

  /// - Parameters:
  ///   - publishing: false only looks and counts.
  ///   - progress: one line, now and then.
  /// - Returns: what was found; `isWhole` is false where the stop came first.
  public func run(
    from: Instant, to: Instant, publishing: Bool, until stop: StopSignal, progress: (String) -> Void
  ) throws -> Outcome {
    let now = clock.now()
    let oldest = now.advanced(byMilliseconds: Self.margin - api.settings.side.historyMilliseconds)
    var outcome = Outcome(asked: (from, to), from: max(from, oldest), to: min(to, now))
    guard outcome.from < outcome.to else {
      outcome.isWhole = true
      return outcome
    }
    var known = try read(since: outcome.from.advanced(byMilliseconds: -Self.earlier), until: stop, progress)
    let producer = publishing ? try log.producer() : nil
    defer { _ = producer?.close(withinMilliseconds: 10_000) }
    var listed: Set<Print> = []
    var start = outcome.from
    while start < outcome.to, !stop.isSet {
      let end = min(outcome.to, start.advanced(byMilliseconds: Self.stretch))
      try list(from: start, to: end, until: stop) { page in
        try take(page, &known, &listed, &outcome, producer)
        progress("\(start): \(outcome.listed) listed, \(outcome.published) missing")
      }
      start = end
    }
    outcome.isWhole = !stop.isSet
    return outcome
  }

  /// The notifications on the log, by their bytes.
  private func read(
    since: Instant, until stop: StopSignal, _ progress: (String) -> Void
  ) throws -> Set<Print> {
    var known: Set<Print> = []
    var count = 0
    try TopicTail(log: log, topic: topics.name(.received)).run(from: since, follow: false, limit: nil, until: stop) {
      stored in
      count += 1
      if count % 10_000 == 0 { progress("\(count) records of the log read") }
      // What can't be read is the business of the stage that puts it into quarantine.
      guard let envelope = try? Envelope(reading: stored.record), envelope.type == .storeNotified,
        let event = try? ReceivedEvent(type: .storeNotified, data: stored.record.value ?? []),
        case .notified(let notified) = event
      else { return }
      known.insert(Print(notified.signedPayload))
    }
    return known
  }

  private func list(
    from: Instant, to: Instant, until stop: StopSignal, _ body: (NotificationPage) throws -> Void
  ) throws {
    let filter = NotificationFilter(from: from, to: to)
    var restarts = 0
    var token: String?
    repeat {
      let page: NotificationPage
      do { page = try api.notificationHistory(filter, paginationToken: token) } catch {
        let isTokenOver = error.code == .paginationTokenExpired || error.code == .invalidPaginationToken
        guard token != nil, isTokenOver, restarts < Self.maximumRestarts else { throw error }
        restarts += 1
        token = nil
        continue
      }
      try body(page)
      guard page.hasMore else { return }
      // The same page for ever.
      guard page.paginationToken != token else {
        throw ServerAPIFailure.unusableBody("the next page's token is the last page's")
      }
      token = page.paginationToken
    } while !stop.isSet
  }

  private func take(
    _ page: NotificationPage, _ known: inout Set<Print>, _ listed: inout Set<Print>, _ outcome: inout Outcome,
    _ producer: (any LogProducer)?
  ) throws {
    var missing: [ProducedRecord] = []
    for sent in page.notifications {
      let print = Print(sent.signedPayload)
      guard listed.insert(print).inserted else { continue }
      outcome.listed += 1
      if !sent.attempts.contains(where: \.succeeded) { outcome.undelivered += 1 }
      guard known.insert(print).inserted else {
        outcome.present += 1
        continue
      }
      guard sent.signedPayload.utf8.count <= ReceivedEvent.maximumProofBytes else {
        outcome.refused += 1
        continue
      }
      let event = ReceivedEvent.notified(StoreNotified(signedPayload: sent.signedPayload, isBackfill: true))
      missing.append(ReceivedRecord(event).produced(to: topics, source: "/purchases/backfill", at: clock.now()))
    }
    guard let producer, !missing.isEmpty else {
      outcome.published += missing.count
      return
    }
    for result in producer.publishAndWait(missing) {
      switch result {
      case .success: outcome.published += 1
      case .failure(let failure) where failure.kind == .refused: outcome.refused += 1
      case .failure(let failure): throw failure
      }
    }
  }
}
