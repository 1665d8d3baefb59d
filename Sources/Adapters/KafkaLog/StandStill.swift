import Dispatch
import PurchasesKafka
import Synchronization

/// Notices when this process stood still: stopped by a signal, or on a starved machine. Who stood still may have lost its
/// name to a successor; whom nobody answered for as long has only waited.
///
/// `@unchecked`: the timer is set up before anybody else sees it, and never changed; the rest is locked.
final class StandStill: @unchecked Sendable {
  private struct Beats {
    var last: Int64
    /// The gaps worth remembering, as when they ended and how long they were.
    var gaps: [(end: Int64, milliseconds: Int64)] = []
  }

  // Ten beats a second cost nothing, and are a tenth of the shortest time that is asked about.
  private static let beatMilliseconds = 100
  // Shorter ones come from a busy machine; nobody asks about them.
  static let leastMilliseconds: Int64 = 1_000
  // Nobody asks about what was before the last few transactions.
  private static let keptGaps = 16

  private let beats: Mutex<Beats>
  private let timer: any DispatchSourceTimer

  /// One for the process, for as long as it lives: a session that ends forgets nothing.
  static let ofProcess = StandStill()

  private init() {
    beats = Mutex(Beats(last: KafkaClock.milliseconds()))
    timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "purchases.kafka.beat"))
    timer.setEventHandler { self.beat() }
    timer.schedule(deadline: .now(), repeating: .milliseconds(Self.beatMilliseconds))
    timer.resume()
  }

  /// Whether a gap of at least this length ended after `instant`, of the clock that never jumps.
  func happened(since instant: Int64, forAtLeast milliseconds: Int64) -> Bool {
    // The gap that has just ended is often asked about before the next beat.
    beat()
    return beats.withLock { $0.gaps.contains { $0.end >= instant && $0.milliseconds >= milliseconds } }
  }

  private func beat() {
    beats.withLock { beats in
      let now = KafkaClock.milliseconds()
      let gap = now - beats.last
      beats.last = now
      guard gap >= Self.leastMilliseconds else { return }
      beats.gaps = beats.gaps.suffix(Self.keptGaps - 1) + [(now, gap)]
    }
  }
}
