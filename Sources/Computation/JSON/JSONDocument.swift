import CPurchasesJSON
import Glibc

/// A parsed document: one buffer of yyjson, read through ``JSONView`` without copying.
///
/// Accepts RFC 8259 strictly: UTF-8 is checked, lone surrogates, comments, trailing commas, a byte order mark and bytes
/// after the value are refused. Repeated member names are allowed by the RFC; ``firstDuplicateMember()`` finds them for
/// callers who must refuse them.
public struct JSONDocument: Sendable {
  /// Containers within containers. Documents of this system nest about eight deep; the bound keeps every recursion over
  /// a document far from the end of a thread's stack.
  public static let maximumDepth = 64

  let storage: JSONStorage

  public init(parsing bytes: [UInt8]) throws(JSONError) {
    var failure = yyjson_read_err()
    // Numbers stay text, so that identifiers above 2^53 and fractions keep each digit.
    let doc = bytes.withUnsafeBytes { buffer in
      yyjson_read_opts(
        UnsafeMutablePointer(mutating: buffer.baseAddress?.assumingMemoryBound(to: CChar.self)), buffer.count,
        YYJSON_READ_NUMBER_AS_RAW, nil, &failure)
    }
    guard let doc else {
      let reason = failure.msg.map { String(cString: $0) } ?? "unreadable"
      throw JSONError(offset: bytes.isEmpty ? 0 : failure.pos, reason: bytes.isEmpty ? "empty" : reason)
    }
    storage = JSONStorage(doc)
    if !fitsDepth(doc.pointee.root, Self.maximumDepth) {
      throw JSONError(offset: 0, reason: "nested deeper than \(Self.maximumDepth)")
    }
  }

  public var root: JSONView { JSONView(storage, storage.doc.pointee.root) }

  /// The first member name, in document order, that its object holds already; nil if all names are unique.
  public func firstDuplicateMember() -> String? { duplicateMember(in: storage.doc.pointee.root) }
}

/// Owns one parsed yyjson document.
///
/// `@unchecked Sendable`: yyjson never writes to an immutable document after reading it, no code here does either, and
/// it is freed once, when the last view lets go.
final class JSONStorage: @unchecked Sendable {
  let doc: UnsafeMutablePointer<yyjson_doc>

  init(_ doc: UnsafeMutablePointer<yyjson_doc>) { self.doc = doc }

  deinit { yyjson_doc_free(doc) }
}

typealias JSONPointer = UnsafeMutablePointer<yyjson_val>

/// Calls the body with each child value and, in an object, its name, until it answers false.
@inline(__always)
func forEachChild(of value: JSONPointer, _ body: (_ name: JSONPointer?, _ value: JSONPointer) -> Bool) {
  let isObject = unsafe_yyjson_is_obj(value)
  guard isObject || unsafe_yyjson_is_arr(value), let first = unsafe_yyjson_get_first(value) else { return }
  var left = unsafe_yyjson_get_len(value)
  var next = first
  while left > 0 {
    // In an object the name and its value are neighbours, and the next name follows the value's whole subtree.
    let child = isObject ? next + 1 : next
    guard body(isObject ? next : nil, child) else { return }
    left -= 1
    if left > 0, let following = unsafe_yyjson_get_next(child) { next = following }
  }
}

/// Whether no container lies deeper than `allowed`; recursion ends there too, however deep the document.
private func fitsDepth(_ value: JSONPointer?, _ allowed: Int) -> Bool {
  guard let value, unsafe_yyjson_is_ctn(value) else { return true }
  guard allowed > 0 else { return false }
  var fits = true
  forEachChild(of: value) { _, child in
    fits = fitsDepth(child, allowed - 1)
    return fits
  }
  return fits
}

/// Objects of up to so many members are searched pair by pair, which allocates nothing; a larger one could be a stranger's
/// way of making that slow, and is searched by hash.
private let membersComparedPairwise = 48

private func duplicateMember(in value: JSONPointer?) -> String? {
  guard let value, unsafe_yyjson_is_ctn(value) else { return nil }
  if unsafe_yyjson_get_len(value) > membersComparedPairwise { return hashedDuplicate(in: value) }
  return withUnsafeTemporaryAllocation(of: UnsafeBufferPointer<UInt8>.self, capacity: membersComparedPairwise) {
    names in
    var count = 0
    var found: String?
    forEachChild(of: value) { name, child in
      if let name {
        let text = textBuffer(of: name)
        for index in 0..<count where names[index].count == text.count && isSame(names[index], text) {
          found = String(decoding: text, as: UTF8.self)
          return false
        }
        names.initializeElement(at: count, to: text)
        count += 1
      }
      found = duplicateMember(in: child)
      return found == nil
    }
    return found
  }
}

/// Texts of one length.
@inline(__always)
private func isSame(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Bool {
  guard let start = left.baseAddress, let other = right.baseAddress else { return true }
  return memcmp(start, other, left.count) == 0
}

private func hashedDuplicate(in value: JSONPointer) -> String? {
  var seen: Set<[UInt8]> = []
  var found: String?
  forEachChild(of: value) { name, child in
    if let name, !seen.insert(Array(textBuffer(of: name))).inserted {
      found = String(decoding: textBuffer(of: name), as: UTF8.self)
    }
    if found == nil { found = duplicateMember(in: child) }
    return found == nil
  }
  return found
}

/// The bytes of a string or of a raw number.
@inline(__always)
func textBuffer(of value: JSONPointer) -> UnsafeBufferPointer<UInt8> {
  let length = unsafe_yyjson_get_len(value)
  guard let start = unsafe_yyjson_get_str(value) else { return UnsafeBufferPointer(start: nil, count: 0) }
  return UnsafeRawBufferPointer(start: start, count: length).assumingMemoryBound(to: UInt8.self)
}
