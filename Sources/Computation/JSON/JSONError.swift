/// Why a text is not a JSON document this module accepts.
///
/// It names a place and a cause and never quotes the input, which may hold a proof or a token: the error may be logged.
public struct JSONError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Byte offset in the input at which reading stopped.
  public let offset: Int
  /// A fixed phrase.
  public let reason: String

  public init(offset: Int, reason: String) {
    self.offset = offset
    self.reason = reason
  }

  public var description: String { "not acceptable JSON at byte \(offset): \(reason)" }
}
