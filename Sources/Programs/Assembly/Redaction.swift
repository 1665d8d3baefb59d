public enum Redaction {
  /// An address without the password that may be in it.
  public static func address(_ text: String) -> String {
    guard let scheme = text.range(of: "://") else { return text }
    var rest = String(text[scheme.upperBound...])
    if let at = rest.firstIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") {
      rest.replaceSubrange(rest.index(after: colon)..<at, with: "***")
    }
    let parts = rest.split(separator: "&", omittingEmptySubsequences: false).map { part -> Substring in
      guard let mark = part.range(of: "password=") else { return part }
      return part[..<mark.upperBound] + "***"
    }
    return text[..<scheme.upperBound] + parts.joined(separator: "&")
  }
}
