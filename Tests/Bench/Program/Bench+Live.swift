import Glibc
import PurchasesCore
import PurchasesLocalAppStore
import PurchasesRunner

/// Rows of the released program as it runs: how soon, and not how many.
extension Bench {
  // MARK: latency

  /// Milliseconds from an event's 202 to its permit, by which 99 of 100 must have it.
  private static let latencyFloor = 150.0
  private static let perSecond = 500.0
  private static let warmSeconds = 10

  /// From the 202 of an event to the permit to finish it, over HTTP and in the topic, at 500 events a second by a timetable.
  func latency() throws -> [Claim] {
    say("latency: 500 events/s for \(latencySeconds) s")
    let authority = LocalAuthority(seed: Day.seed)
    let warm = Self.warmSeconds * Int(Self.perSecond)
    let reports = signed(warm + latencySeconds * Int(Self.perSecond), authority, series: 1, expires: nil)
    let service = try live("latency", authority)
    defer { service.stop() }
    let watch = TopicWatch(service)
    let loop = OpenLoop(reports, perSecond: Self.perSecond, begin: Gauge.now + 1, waits: true, to: service)
    let times = loop.wait()
    let deadline = Gauge.now + 20
    while watch.permits < reports.count, Gauge.now < deadline { usleep(50_000) }
    try watch.close()
    var http: [Double] = []
    var topic: [Double] = []
    var timetable: [Double] = []
    for index in warm..<reports.count {
      guard let accepted = times[index].accepted, let permitted = times[index].permitted,
        let read = watch.permit(reports[index].proof)
      else { continue }
      http.append(permitted - accepted)
      topic.append(max(0, read - accepted))
      timetable.append(max(permitted, read) - times[index].due)
    }
    let lost = reports.count - warm - http.count
    func claim(_ name: String, _ parts: Percentiles, floor: Double?) -> Claim {
      Claim(
        name: name,
        text: "\(parts.text), of \(parts.count) events at \(Int(Self.perSecond))/s; \(lost) without a permit",
        limit: floor.map { "p99 below \(Spread.text($0, 0)) ms, none without" },
        values: [("p50", parts.p50), ("p95", parts.p95), ("p99", parts.p99), ("most", parts.most)],
        isOK: floor.map { parts.p99 < $0 && lost == 0 } ?? true)
    }
    return [
      claim("202 to permit over HTTP", Percentiles(http), floor: Self.latencyFloor),
      claim("202 to permit in the topic", Percentiles(topic), floor: Self.latencyFloor),
      claim("timetable to both", Percentiles(timetable), floor: nil),
    ]
  }

  private func signed(
    _ count: Int, _ authority: LocalAuthority, series: Int, expires: Instant?
  ) -> [SyntheticPurchases.Report] {
    let purchases = SyntheticPurchases(authority: authority, series: series)
    let now = SystemClock().now()
    return Cores.map(Array(0..<count)) { purchases.report($0, at: now, expires: expires) }
  }

  // MARK: expiry

  /// Seconds after its end at which access must be off at the latest.
  private static let expirySeconds = 1.0
  private static let sidePerSecond = 100.0
  /// From the signing of the purchases to their common end: to get them in, and settle.
  private static let leadSeconds = 45.0
  /// Of the side load that is looked at before the instant, and after it.
  private static let lookSeconds = 5.0

  /// Accounts whose access ends at one instant: how long until the last one's `entitlement.expired` can be read, and what a
  /// load beside it noticed.
  func expiry() throws -> [Claim] {
    let count = expiring
    say("expiry: \(count) accounts at one instant")
    let authority = LocalAuthority(seed: Day.seed)
    let clock = SystemClock()
    let side = signed(
      Int((Self.leadSeconds + 30) * Self.sidePerSecond), authority, series: 3, expires: nil)
    let service = try live("expiry", authority)
    defer { service.stop() }
    let watch = TopicWatch(service)
    // Both clocks are read at once: the end is an instant of the calendar, what is measured is not.
    let (now, gauge) = (clock.now(), Gauge.now)
    let end = now.advanced(byMilliseconds: Int64(Self.leadSeconds * 1000))
    let instant = gauge + Self.leadSeconds
    let reports = signed(count, authority, series: 2, expires: end)
    for start in stride(from: 0, to: count, by: 1_000) {
      _ = try service.post(reports[start..<min(count, start + 1_000)])
    }
    while watch.permits < count, Gauge.now < instant - 2 * Self.lookSeconds { usleep(50_000) }
    guard watch.permits >= count else {
      throw BenchFailure(
        "\(watch.permits) of \(count) purchases were granted before their end: no row of it can be made")
    }
    let begin = instant - 2 * Self.lookSeconds
    let beside = Array(side.prefix(Int(Self.sidePerSecond * 4 * Self.lookSeconds)))
    let loop = OpenLoop(beside, perSecond: Self.sidePerSecond, begin: begin, waits: true, to: service)
    let times = loop.wait()
    let deadline = Gauge.now + 60
    // gold grants two entitlements: each ends with an event of its own.
    while watch.expiries.count < 2 * count, Gauge.now < deadline { usleep(20_000) }
    // A second copy would come soon after.
    usleep(1_000_000)
    try watch.close()
    let expiries = watch.expiries
    let last = (expiries.max() ?? 0) - instant
    let first = (expiries.min() ?? 0) - instant
    var before: [Double] = []
    var during: [Double] = []
    var lost = 0
    for time in times {
      guard let accepted = time.accepted, let permitted = time.permitted else {
        lost += 1
        continue
      }
      switch time.due - instant {
      case -Self.lookSeconds..<0: before.append(permitted - accepted)
      case 0..<Self.lookSeconds: during.append(permitted - accepted)
      default: break
      }
    }
    let (calm, busy) = (Percentiles(before), Percentiles(during))
    return [
      Claim(
        name: "expiry of \(count) accounts",
        text: "the last of \(expiries.count) entitlement.expired readable \(Spread.text(last, 2)) s after the instant, "
          + "the first after \(Spread.text(first, 2)) s",
        limit: "all \(2 * count), once each, the first within \(Spread.text(Self.expirySeconds, 0)) s",
        values: [("last", last), ("first", first), ("events", Double(expiries.count))],
        isOK: expiries.count == 2 * count && first < Self.expirySeconds),
      Claim(
        name: "a load of \(Int(Self.sidePerSecond))/s beside it",
        text: "202 to permit \(calm.text) before; \(busy.text) in the \(Int(Self.lookSeconds)) s from the instant on; "
          + "\(lost) without a permit",
        limit: "none without",
        values: [("p99Before", calm.p99), ("p99During", busy.p99), ("mostDuring", busy.most)],
        isOK: lost == 0),
    ]
  }

  private func live(_ name: String, _ authority: LocalAuthority) throws -> LiveService {
    guard !purchases.isEmpty, !brokers.isEmpty else { throw BenchFailure("\(name) needs --purchases and --kafka") }
    return try LiveService(name, program: purchases, brokers: brokers, folder: folder, authority: authority)
  }
}
