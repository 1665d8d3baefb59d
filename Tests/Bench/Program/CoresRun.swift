import PurchasesContracts
import PurchasesCore
import PurchasesRunner
import PurchasesVerification

/// The verification stage's share of the runner's loop, reading and deciding a batch, on one core or on all.
struct CoresRun {
  private let stage: VerificationStage
  private let batch: [StoredRecord]

  init() throws {
    let day = Day(accounts: 4_000)
    stage = VerificationStage(try Day.verification(day.scenario.authority))
    var records: [StoredRecord] = []
    try day.received { record in
      let isPurchase = (try? Envelope(reading: record))?.type == .paymentPurchased
      guard isPurchase, records.count < RunnerSettings.maximumBatch else { return }
      let place = Coordinates(topic: StageRun.topics.name(.received), partition: 0, offset: Int64(records.count))
      records.append(StoredRecord(coordinates: place, record: record))
    }
    guard records.count == RunnerSettings.maximumBatch else {
      throw BenchFailure("the day has only \(records.count) purchases")
    }
    batch = records
  }

  /// Decides the batch again and again for so many seconds by the clock. All cores take it through `Cores.map`, which is
  /// what the runner does; one takes the same steps in a row.
  func run(seconds: Double, onAll: Bool) throws -> Sample {
    let stage = stage
    let decide = { @Sendable (stored: StoredRecord) -> [Action] in
      let envelope: Result<Envelope, EnvelopeFailure>
      do throws(EnvelopeFailure) { envelope = .success(try Envelope(reading: stored.record)) } catch {
        envelope = .failure(error)
      }
      let incoming = Incoming(stored: stored, topic: .received, envelope: envelope).read(by: stage)
      return stage.decide(incoming, NoFacts(), Moment(now: Day.begin))
    }
    _ = Cores.map(batch, decide)
    let (began, begin) = (Gauge.now, Gauge.cpu)
    var count = 0
    while Gauge.now - began < seconds {
      let decided = onAll ? Cores.map(batch, decide) : batch.map(decide)
      for actions in decided {
        guard case .emit(let event)? = actions.first, event.topic == .verified else {
          throw BenchFailure("a purchase without a verdict")
        }
      }
      count += decided.count
    }
    return Sample(count: count, seconds: Gauge.now - began, cpu: Gauge.cpu - begin)
  }
}

/// A stage without state asks for none.
private struct NoFacts: Facts {
  func row(_ key: RowKey) -> PurchasesContracts.Row? { nil }
  func rows(_ need: Need) -> [PurchasesContracts.Row] { [] }
  func answer(_ question: AppStoreQuestion) -> AppStoreAnswer? { nil }
}
