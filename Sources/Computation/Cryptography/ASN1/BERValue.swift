/// A value in BER: a place in what was read as a whole.
public struct BERValue: Sendable {
  /// Identifier bytes: class, form and tag number.
  public enum Tag {
    public static let integer: UInt8 = 0x02
    public static let octetString: UInt8 = 0x04
    public static let constructedOctetString: UInt8 = 0x24
    public static let objectIdentifier: UInt8 = 0x06
    public static let utf8String: UInt8 = 0x0C
    public static let printableString: UInt8 = 0x13
    public static let ia5String: UInt8 = 0x16
    public static let sequence: UInt8 = 0x30
    public static let set: UInt8 = 0x31

    /// Of the context, with values inside.
    public static func context(_ number: UInt8) -> UInt8 { 0xA0 | number }
  }

  private let tree: BERTree
  private let index: Int

  /// Reads exactly one value.
  public init(parsing bytes: [UInt8]) throws(BERFailure) {
    tree = try BERTree(parsing: bytes)
    index = 0
  }

  private init(_ tree: BERTree, _ index: Int) {
    self.tree = tree
    self.index = index
  }

  private var node: BERTree.Node { tree.nodes[index] }

  public var tag: UInt8 { node.identifier }

  /// The bytes between header and end, with what is inside still encoded.
  public var content: ArraySlice<UInt8> { tree.bytes[Int(node.contentStart)..<Int(node.contentEnd)] }

  /// The whole value as it stands.
  public var encoding: ArraySlice<UInt8> { tree.bytes[Int(node.start)..<Int(node.end)] }

  /// The values directly inside; none in a primitive one.
  public var children: [BERValue] {
    guard node.isConstructed else { return [] }
    var children: [BERValue] = []
    var child = index + 1
    while child < Int(node.next) {
      children.append(BERValue(tree, child))
      child = Int(tree.nodes[child].next)
    }
    return children
  }

  /// The bytes of an octet string, which BER may cut into pieces; nil for anything else.
  public var octets: [UInt8]? {
    switch tag {
    case Tag.octetString: return Array(content)
    case Tag.constructedOctetString:
      var bytes: [UInt8] = []
      var inside = index + 1
      // The pieces of pieces follow one another too: one pass over all of them.
      while inside < Int(node.next) {
        let piece = tree.nodes[inside]
        switch piece.identifier {
        case Tag.octetString: bytes += tree.bytes[Int(piece.contentStart)..<Int(piece.contentEnd)]
        case Tag.constructedOctetString: break
        default: return nil
        }
        inside += 1
      }
      return bytes
    default: return nil
    }
  }

  /// An integer of 0 to 2^64 - 1; nil for anything else.
  public var unsigned: UInt64? {
    guard tag == Tag.integer, let first = content.first, first < 0x80 else { return nil }
    let digits = content.drop { $0 == 0 }
    guard digits.count <= 8 else { return nil }
    return digits.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The text of a string; nil for anything else, and for bytes that are not UTF-8.
  public var text: String? {
    guard tag == Tag.utf8String || tag == Tag.ia5String || tag == Tag.printableString else { return nil }
    return String(validating: content, as: UTF8.self)
  }

  /// The same value with definite lengths of the shortest form, and octet strings in one piece: DER, but for the order of
  /// sets, which stays.
  public var definite: [UInt8] {
    if tag == Tag.constructedOctetString, let octets { return Self.encode(Tag.octetString, octets[...]) }
    guard node.isConstructed else { return Self.encode(tag, content) }
    var inside: [UInt8] = []
    // Not deeper than the tree is.
    for child in children { inside += child.definite }
    return Self.encode(tag, inside[...])
  }

  /// One value in DER.
  public static func encode(_ tag: UInt8, _ content: ArraySlice<UInt8>) -> [UInt8] {
    var bytes = [tag]
    if content.count < 0x80 {
      bytes.append(UInt8(content.count))
    } else {
      var length = content.count
      var digits: [UInt8] = []
      while length > 0 {
        digits.insert(UInt8(length & 0xFF), at: 0)
        length >>= 8
      }
      bytes.append(0x80 | UInt8(digits.count))
      bytes += digits
    }
    return bytes + content
  }
}
