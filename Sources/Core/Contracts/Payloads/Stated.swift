/// A value of one of Apple's lists: one that its documentation names, or another one, kept as it came. Apple adds values
/// without notice; a new one must not stop anything.
public enum Stated<Known: RawRepresentable & Sendable & Hashable>: Sendable, Hashable
where Known.RawValue: Sendable & Hashable {
  case known(Known)
  case unknown(Known.RawValue)

  public init(_ raw: Known.RawValue) { self = Known(rawValue: raw).map(Stated.known) ?? .unknown(raw) }

  public var raw: Known.RawValue {
    switch self {
    case .known(let value): value.rawValue
    case .unknown(let raw): raw
    }
  }

  /// Nil for a value that the documentation doesn't name.
  public var known: Known? {
    if case .known(let value) = self { value } else { nil }
  }
}
