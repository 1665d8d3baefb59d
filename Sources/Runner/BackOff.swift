/// Growing pauses between tries: doubled each time up to a limit, with a random part so that many instances don't knock at
/// the same moment.
public struct BackOff: Sendable {
  public let first: Int64
  public let limit: Int64
  public private(set) var tries = 0

  /// 100 ms to 10 s: quick after a blip, and no load worth naming during an outage.
  public init(firstMilliseconds: Int64 = 100, limitMilliseconds: Int64 = 10_000) {
    first = firstMilliseconds
    limit = limitMilliseconds
  }

  public mutating func reset() { tries = 0 }

  /// The next pause in milliseconds: between half and all of the doubled one, as chance says.
  public mutating func next(_ chance: (ClosedRange<Int64>) -> Int64 = { Int64.random(in: $0) }) -> Int64 {
    let doubled = min(limit, first << Int64(min(tries, 20)))
    tries += 1
    return chance(doubled / 2...doubled)
  }
}
