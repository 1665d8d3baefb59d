import PurchasesCore

/// Reads `Retry-After`: seconds or a date as HTTP has it, and Apple's form on 429, milliseconds since 1970.
public enum RetryAfter {
  /// Apple counts its limits by the hour. A header that asks for more than a day is a mistake, and must not stop us for ever.
  public static let longest: Int64 = 86_400_000

  /// A number above this is no count of seconds to wait (thirty years) but a time.
  private static let firstTime: Int64 = 1_000_000_000
  /// A time above this is in milliseconds: in seconds it would be the year 5138.
  private static let firstMilliseconds: Int64 = 100_000_000_000

  /// When the next request may go; never before `now`, never later than ``longest`` after it. Nil for what can't be read.
  public static func instant(_ header: String?, now: Instant) -> Instant? {
    guard let header, let asked = time(header, now) else { return nil }
    return min(max(asked, now), now.advanced(byMilliseconds: longest))
  }

  private static func time(_ header: String, _ now: Instant) -> Instant? {
    let text = header.utf8.filter { $0 != 0x20 }
    if let first = text.first, first >= 48, first <= 57 {
      guard let number = Int64(String(decoding: text, as: UTF8.self)), number >= 0 else { return nil }
      if number >= firstMilliseconds { return Instant(milliseconds: number) }
      if number >= firstTime { return Instant(milliseconds: number * 1000) }
      return now.advanced(byMilliseconds: number * 1000)
    }
    return date(header)
  }

  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// The three forms of RFC 9110: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`,
  /// `Sun Nov  6 08:49:37 1994`.
  static func date(_ text: String) -> Instant? {
    var parts = text.split { " ,-:".contains($0) }
    guard parts.count >= 7, parts.count <= 8 else { return nil }
    // C's form puts the month first and the year last; then all three have one order.
    if months.contains(String(parts[1])) {
      parts = [parts[0], parts[2], parts[1], parts[6], parts[3], parts[4], parts[5]]
    } else if parts.count == 8, parts[7] != "GMT" {
      return nil
    }
    guard let month = months.firstIndex(of: String(parts[2])), let day = Int(parts[1]), var year = Int(parts[3]),
      let hour = Int(parts[4]), let minute = Int(parts[5]), let second = Int(parts[6]), (0...9999).contains(year)
    else { return nil }
    if parts[3].count == 2 { year += year < 70 ? 2000 : 1900 }
    func digits(_ number: Int, _ count: Int) -> String {
      String(repeating: "0", count: max(0, count - String(number).count)) + String(number)
    }
    return Instant(
      rfc3339: "\(digits(year, 4))-\(digits(month + 1, 2))-\(digits(day, 2))T\(digits(hour, 2)):\(digits(minute, 2))"
        + ":\(digits(min(second, 59), 2))Z")
  }
}
