/// A point in time: milliseconds since 1970-01-01T00:00:00Z, as Apple and Kafka count it.
public struct Instant: Sendable, Hashable, Comparable {
  public var milliseconds: Int64

  public init(milliseconds: Int64) { self.milliseconds = milliseconds }

  public static let distantPast = Instant(milliseconds: .min)
  public static let distantFuture = Instant(milliseconds: .max)

  public static func < (a: Instant, b: Instant) -> Bool { a.milliseconds < b.milliseconds }

  /// Saturates at the ends of the scale instead of trapping: dates come from outside.
  public func advanced(byMilliseconds delta: Int64) -> Instant {
    let (sum, overflow) = milliseconds.addingReportingOverflow(delta)
    return Instant(milliseconds: overflow ? (delta < 0 ? .min : .max) : sum)
  }
}

extension Instant: CustomStringConvertible {
  /// Whether RFC 3339 can write it: the years 1 to 9999.
  public var hasFourDigitYear: Bool {
    milliseconds >= -62_135_596_800_000 && milliseconds < 253_402_300_800_000
  }

  /// RFC 3339 in UTC with milliseconds, such as `2026-11-30T02:29:41.000Z`.
  public var rfc3339: String {
    let day: Int64 = 86_400_000
    guard hasFourDigitYear else { return "\(milliseconds)ms" }
    var days = milliseconds / day
    var rest = milliseconds % day
    if rest < 0 {
      rest += day
      days -= 1
    }
    let (year, month, dayOfMonth) = Self.civil(fromDays: days)
    let seconds = rest / 1000
    // Straight into the text's 24 bytes: each event that passes has some of these in it.
    return String(unsafeUninitializedCapacity: 24) { bytes in
      func put(_ value: Int64, _ width: Int, at start: Int, then separator: UInt8) {
        var value = value
        for place in stride(from: start + width - 1, through: start, by: -1) {
          bytes.initializeElement(at: place, to: 48 + UInt8(truncatingIfNeeded: value % 10))
          value /= 10
        }
        bytes.initializeElement(at: start + width, to: separator)
      }
      put(year, 4, at: 0, then: UInt8(ascii: "-"))
      put(month, 2, at: 5, then: UInt8(ascii: "-"))
      put(dayOfMonth, 2, at: 8, then: UInt8(ascii: "T"))
      put(seconds / 3600, 2, at: 11, then: UInt8(ascii: ":"))
      put(seconds / 60 % 60, 2, at: 14, then: UInt8(ascii: ":"))
      put(seconds % 60, 2, at: 17, then: UInt8(ascii: "."))
      put(rest % 1000, 3, at: 20, then: UInt8(ascii: "Z"))
      return 24
    }
  }

  public var description: String { rfc3339 }

  /// Reads RFC 3339 (any offset, any fraction, cut to milliseconds); nil for anything else, such as 30 February.
  public init?(rfc3339 text: String) {
    guard text.utf8.count >= 20, text.utf8.count <= 40 else { return nil }
    var text = text
    guard let instant = text.withUTF8({ Self.read($0) }) else { return nil }
    self = instant
  }

  private static func read(_ bytes: UnsafeBufferPointer<UInt8>) -> Instant? {
    func number(_ start: Int, _ count: Int) -> Int64? {
      guard start + count <= bytes.count else { return nil }
      var value: Int64 = 0
      for byte in bytes[start..<start + count] {
        guard byte >= 48, byte <= 57 else { return nil }
        value = value * 10 + Int64(byte - 48)
      }
      return value
    }
    guard let year = number(0, 4), bytes[4] == 45, let month = number(5, 2), bytes[7] == 45, let day = number(8, 2),
      bytes[10] | 0x20 == 116, let hour = number(11, 2), bytes[13] == 58, let minute = number(14, 2), bytes[16] == 58,
      let second = number(17, 2)
    else { return nil }
    guard (1...12).contains(month), day >= 1, hour < 24, minute < 60, second < 60 else { return nil }
    let lengths: [Int64] = [31, Self.isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    guard day <= lengths[Int(month) - 1] else { return nil }
    var index = 19
    var fraction: Int64 = 0
    if bytes[index] == 46 {
      index += 1
      var digits = 0
      while index < bytes.count, bytes[index] >= 48, bytes[index] <= 57 {
        if digits < 3 { fraction = fraction * 10 + Int64(bytes[index] - 48) }
        digits += 1
        index += 1
      }
      guard digits > 0 else { return nil }
      for _ in digits..<max(3, digits) { fraction *= 10 }
    }
    guard index < bytes.count else { return nil }
    var offset: Int64 = 0
    if bytes[index] | 0x20 == 122 {
      index += 1
    } else {
      let sign: Int64
      switch bytes[index] {
      case 43: sign = 1
      case 45: sign = -1
      default: return nil
      }
      guard let hours = number(index + 1, 2), index + 3 < bytes.count, bytes[index + 3] == 58,
        let minutes = number(index + 4, 2), hours < 24, minutes < 60
      else { return nil }
      offset = sign * (hours * 60 + minutes) * 60_000
      index += 6
    }
    guard index == bytes.count else { return nil }
    let days = Self.days(fromYear: year, month: month, day: day)
    return Instant(
      milliseconds: days * 86_400_000 + ((hour * 60 + minute) * 60 + second) * 1000 + fraction - offset)
  }

  private static func isLeap(_ year: Int64) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

  /// So many months later, at the same time of day in UTC; the last day of the month where the day doesn't exist in it.
  public func advanced(byMonths months: Int64) -> Instant {
    let day: Int64 = 86_400_000
    // Years 1 to 9999, and no more months than that: dates beyond are nobody's purchase.
    guard months != 0, hasFourDigitYear, months.magnitude < 120_000
    else { return months == 0 ? self : (months > 0 ? .distantFuture : .distantPast) }
    let days = milliseconds >= 0 ? milliseconds / day : (milliseconds - day + 1) / day
    let date = Self.civil(fromDays: days)
    let count = date.year * 12 + date.month - 1 + months
    let year = count >= 0 ? count / 12 : (count - 11) / 12
    let month = count - year * 12 + 1
    let lengths: [Int64] = [31, Self.isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    let shifted = Self.days(fromYear: year, month: month, day: min(date.day, lengths[Int(month) - 1]))
    return Instant(milliseconds: shifted * day + milliseconds - days * day)
  }

  // The proleptic Gregorian calendar counted in eras of 400 years that begin on 1 March, so that the leap day is last.
  private static func days(fromYear year: Int64, month: Int64, day: Int64) -> Int64 {
    let y = month <= 2 ? year - 1 : year
    let era = (y >= 0 ? y : y - 399) / 400
    let yearOfEra = y - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }

  private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let z = days + 719_468
    let era = (z >= 0 ? z : z - 146_096) / 146_097
    let dayOfEra = z - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
  }
}
