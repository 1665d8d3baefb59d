/// How long a non-renewing subscription runs, as ISO 8601 writes it: `P30D`, `P1M`, `P1Y`, `P2W`, `PT12H`. Years and
/// months follow the calendar in UTC (31 January plus a month is the last day of February); all else is exact.
public struct CalendarDuration: Sendable, Hashable, CustomStringConvertible {
  public var months: Int64
  public var milliseconds: Int64

  public init(months: Int64 = 0, milliseconds: Int64 = 0) {
    self.months = months
    self.milliseconds = milliseconds
  }

  /// Longer numbers than this are a mistake in a catalogue, and keep all sums far from overflow.
  public static let maximumNumber: Int64 = 9_999

  /// nil for what is not a duration, has a fraction or is of no length.
  public init?(iso8601 text: String) {
    var rest = text.utf8[...]
    guard rest.popFirst() == UInt8(ascii: "P") else { return nil }
    var months: Int64 = 0
    var milliseconds: Int64 = 0
    var inTime = false
    // The units' own order, so that each stands at most once and days come before the time.
    var place = 0
    while !rest.isEmpty {
      if rest.first == UInt8(ascii: "T") {
        guard !inTime, rest.count > 1 else { return nil }
        rest.removeFirst()
        inTime = true
        place = max(place, 4)
      }
      var number: Int64 = 0
      var digits = 0
      while let byte = rest.first, byte >= 48, byte <= 57 {
        number = number * 10 + Int64(byte - 48)
        digits += 1
        rest.removeFirst()
        guard number <= Self.maximumNumber else { return nil }
      }
      guard digits > 0, let unit = rest.popFirst() else { return nil }
      let position: Int
      switch (inTime, unit) {
      case (false, UInt8(ascii: "Y")): (position, months) = (1, months + number * 12)
      case (false, UInt8(ascii: "M")): (position, months) = (2, months + number)
      case (false, UInt8(ascii: "W")): (position, milliseconds) = (3, milliseconds + number * 604_800_000)
      case (false, UInt8(ascii: "D")): (position, milliseconds) = (4, milliseconds + number * 86_400_000)
      case (true, UInt8(ascii: "H")): (position, milliseconds) = (5, milliseconds + number * 3_600_000)
      case (true, UInt8(ascii: "M")): (position, milliseconds) = (6, milliseconds + number * 60_000)
      case (true, UInt8(ascii: "S")): (position, milliseconds) = (7, milliseconds + number * 1000)
      default: return nil
      }
      guard position > place else { return nil }
      place = position
    }
    guard months > 0 || milliseconds > 0 else { return nil }
    self.init(months: months, milliseconds: milliseconds)
  }

  /// The end of so many of these in a row.
  public func end(from start: Instant, times: Int64) -> Instant {
    let (span, overflow) = milliseconds.multipliedReportingOverflow(by: times)
    guard !overflow else { return .distantFuture }
    return start.advanced(byMonths: months * times).advanced(byMilliseconds: span)
  }

  public var description: String {
    var text = "P"
    if months >= 12 { text += "\(months / 12)Y" }
    if months % 12 > 0 { text += "\(months % 12)M" }
    var rest = milliseconds / 1000
    if rest >= 86_400 { text += "\(rest / 86_400)D" }
    rest %= 86_400
    if rest > 0 { text += "T" }
    for (length, unit) in [(3600 as Int64, "H"), (60, "M"), (1, "S")] where rest >= length {
      text += "\(rest / length)\(unit)"
      rest %= length
    }
    return text
  }
}
