/// Why bytes are not one value in BER. Names what is wrong and where, never what the bytes hold.
public struct BERFailure: Error, Sendable, Hashable, CustomStringConvertible {
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    case empty = "there are no bytes"
    case tooLarge = "more bytes than are read"
    case tooDeep = "values are nested deeper than is read"
    case tooMany = "more values than are read"
    case truncated = "the bytes end within a value"
    case overrun = "a value is longer than the one around it"
    case malformedLength = "a length is not one that is read"
    case indefinitePrimitive = "a primitive value has no length"
    case strayEndOfContents = "an end of contents that ends nothing"
    case longTag = "a tag above 30"
    case trailingBytes = "bytes stand behind the value"
  }

  public let kind: Kind
  /// Of the byte at which it was noticed, from the start.
  public let offset: Int

  public init(_ kind: Kind, at offset: Int) {
    self.kind = kind
    self.offset = offset
  }

  public var description: String { "\(kind.rawValue) (byte \(offset))" }
}
