/// One value in BER with all inside it, definite and indefinite lengths alike, read in one pass over the bytes.
///
/// The pass keeps its own stack, so neither depth nor number of values costs anything but the memory that the limits allow,
/// and its time grows with the number of bytes alone. Strict otherwise: one value, nothing behind it, and each value within
/// the one around it.
final class BERTree: Sendable {
  /// Above any app receipt: those of apps with thousands of purchases have some hundred kilobytes.
  static let maximumByteCount = 1 << 20
  /// PKCS#7 with certificates in it has about a dozen levels.
  static let maximumDepth = 32
  /// Four for each attribute of a receipt; tens of thousands of attributes are nobody's receipt.
  static let maximumValueCount = 1 << 17

  struct Node {
    var identifier: UInt8
    /// Positions in the bytes, from the start of the header to the end of the value with its end of contents.
    var start: Int32
    var contentStart: Int32
    var contentEnd: Int32
    var end: Int32
    /// The number of the first value behind this one and all inside it.
    var next: Int32

    var isConstructed: Bool { identifier & 0x20 != 0 }
  }

  let bytes: [UInt8]
  /// Each value before those inside it.
  let nodes: [Node]

  init(parsing bytes: [UInt8]) throws(BERFailure) {
    self.bytes = bytes
    nodes = try Self.parse(bytes)
  }

  private struct Open {
    var node: Int
    /// Where the value ends; nil while only its end of contents will tell.
    var end: Int?
    /// What no value inside may pass.
    var limit: Int
  }

  private static func parse(_ bytes: [UInt8]) throws(BERFailure) -> [Node] {
    guard !bytes.isEmpty else { throw BERFailure(.empty, at: 0) }
    guard bytes.count <= maximumByteCount else { throw BERFailure(.tooLarge, at: maximumByteCount) }
    var nodes: [Node] = []
    var open: [Open] = []
    var at = 0
    func close(_ contentEnd: Int) {
      let node = open.removeLast().node
      nodes[node].contentEnd = Int32(contentEnd)
      nodes[node].end = Int32(at)
      nodes[node].next = Int32(nodes.count)
    }
    repeat {
      let limit = open.last?.limit ?? bytes.count
      guard at < limit else { throw BERFailure(.truncated, at: at) }
      if bytes[at] == 0 {
        guard let last = open.last, last.end == nil else { throw BERFailure(.strayEndOfContents, at: at) }
        guard at + 1 < limit else { throw BERFailure(.truncated, at: at) }
        guard bytes[at + 1] == 0 else { throw BERFailure(.malformedLength, at: at + 1) }
        let contentEnd = at
        at += 2
        close(contentEnd)
      } else {
        guard nodes.count < maximumValueCount else { throw BERFailure(.tooMany, at: at) }
        let (node, end) = try header(bytes, &at, limit)
        nodes.append(node)
        if node.isConstructed {
          guard open.count < maximumDepth else { throw BERFailure(.tooDeep, at: at) }
          open.append(Open(node: nodes.count - 1, end: end, limit: end ?? limit))
        } else if let end {
          at = end
          nodes[nodes.count - 1].contentEnd = Int32(end)
          nodes[nodes.count - 1].end = Int32(end)
          nodes[nodes.count - 1].next = Int32(nodes.count)
        }
      }
      while let last = open.last, last.end == at { close(at) }
    } while !open.isEmpty
    guard at == bytes.count else { throw BERFailure(.trailingBytes, at: at) }
    return nodes
  }

  /// Reads tag and length; the end is nil where the length is indefinite.
  private static func header(
    _ bytes: [UInt8], _ at: inout Int, _ limit: Int
  ) throws(BERFailure) -> (Node, end: Int?) {
    let start = at
    let identifier = bytes[at]
    guard identifier & 0x1F != 0x1F else { throw BERFailure(.longTag, at: at) }
    at += 1
    guard at < limit else { throw BERFailure(.truncated, at: at) }
    let first = bytes[at]
    at += 1
    var node = Node(
      identifier: identifier, start: Int32(start), contentStart: Int32(at), contentEnd: 0, end: 0, next: 0)
    if first == 0x80 {
      guard node.isConstructed else { throw BERFailure(.indefinitePrimitive, at: at - 1) }
      return (node, nil)
    }
    var length = Int(first)
    if first > 0x80 {
      // Four bytes tell more than is ever read; BER allows zeroes before them, which no writer has a use for.
      let count = Int(first & 0x7F)
      guard count <= 4 else { throw BERFailure(.malformedLength, at: at - 1) }
      guard count <= limit - at else { throw BERFailure(.truncated, at: at) }
      length = bytes[at..<at + count].reduce(0) { $0 << 8 | Int($1) }
      at += count
    }
    guard length <= limit - at else { throw BERFailure(limit == bytes.count ? .truncated : .overrun, at: at) }
    node.contentStart = Int32(at)
    return (node, at + length)
  }
}
