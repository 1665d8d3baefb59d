import PurchasesCore
import Synchronization

/// Kinds of calls that Apple counts apart, with what it allows in production; the sandbox allows a tenth.
public enum RateFamily: String, Sendable, Hashable, CaseIterable {
  case transactionInfo, transactionHistory, appTransactionInfo, subscriptionStatuses, consumption
  case notificationHistory, finish
  case extendRenewal, setAccountToken
  case orderLookUp, refundHistory
  case requestTest, testStatus

  /// Requests a second, by app, as Apple's page "Identifying rate limits" has it.
  public var perSecond: Double {
    switch self {
    case .transactionInfo, .transactionHistory, .appTransactionInfo, .subscriptionStatuses, .consumption,
      .notificationHistory, .finish:
      50
    case .extendRenewal, .setAccountToken: 20
    case .orderLookUp, .refundHistory: 10
    case .requestTest, .testStatus: 1
    }
  }
}

/// Keeps the calls under one API key within Apple's limits, however many clients make them, and all of them away for as
/// long as Apple asks with `Retry-After`.
public final class RateGovernor: Sendable {
  /// Calls that may go at once after a rest, in seconds' worth: Apple counts by the hour, so a short burst is no offence.
  static let burstSeconds = 5.0

  private struct Bucket {
    /// When a bucket that is drawn from at the full rate would be full again: one number says how full it is now.
    var emptyUntil: Double = -.infinity
    var closedUntil = Instant.distantPast
  }

  private let factor: Double
  private let buckets = Mutex<[RateFamily: Bucket]>([:])

  /// - Parameter share: of Apple's limits; what others use under the same key must be left to them.
  public init(_ side: AppleSide, share: Double = 1) {
    precondition(share > 0 && share <= 1, "a share of Apple's limit is above 0 and at most 1")
    factor = (side == .production ? 1 : 0.1) * share
  }

  /// Takes a place for one call.
  ///
  /// - Returns: when it may go: now or later. The place is taken either way.
  func reserve(_ family: RateFamily, _ now: Instant, within longest: Int64) -> Result<Instant, Closed> {
    let interval = 1000 / (family.perSecond * factor)
    // At least one call is always at hand.
    let burst = max(Self.burstSeconds * 1000, interval)
    return buckets.withLock { buckets in
      var bucket = buckets[family] ?? Bucket()
      let time = Double(now.milliseconds)
      // A clock that was set back must not make anybody wait for it to catch up.
      let drawn = min(max(bucket.emptyUntil, time), time + burst + Double(longest)) + interval
      let wait = max(0, drawn - time - burst)
      let goes = max(now.advanced(byMilliseconds: Int64(wait.rounded(.up))), bucket.closedUntil)
      guard goes <= now.advanced(byMilliseconds: longest) else { return .failure(Closed(until: goes)) }
      bucket.emptyUntil = drawn
      buckets[family] = bucket
      return .success(goes)
    }
  }

  /// Apple said: not before then.
  func close(_ family: RateFamily, until: Instant) {
    buckets.withLock { buckets in
      var bucket = buckets[family] ?? Bucket()
      bucket.closedUntil = max(bucket.closedUntil, until)
      buckets[family] = bucket
    }
  }

  struct Closed: Error, Sendable, Hashable {
    let until: Instant
  }

  private struct Name: Hashable {
    let key: String
    let side: AppleSide
  }

  private static let shared = Mutex<[Name: RateGovernor]>([:])

  /// The one of this process for a key: Apple counts what all clients of it send.
  public static func shared(keyID: String, side: AppleSide) -> RateGovernor {
    shared.withLock { all in
      let name = Name(key: keyID, side: side)
      if let found = all[name] { return found }
      let made = RateGovernor(side)
      all[name] = made
      return made
    }
  }
}
