import CPurchasesJSON
import Glibc

/// One value inside a ``JSONDocument``. Keeps the document alive; copies nothing until asked for a string.
///
/// `@unchecked Sendable`: the pointer leads into a document that nobody writes to and that `storage` keeps alive.
public struct JSONView: @unchecked Sendable {
  public enum Kind: Sendable, Hashable { case null, bool, number, string, array, object }

  private let storage: JSONStorage
  private let value: JSONPointer

  init(_ storage: JSONStorage, _ value: JSONPointer) {
    self.storage = storage
    self.value = value
  }

  public var kind: Kind {
    if unsafe_yyjson_is_str(value) { return .string }
    if unsafe_yyjson_is_raw(value) { return .number }
    if unsafe_yyjson_is_obj(value) { return .object }
    if unsafe_yyjson_is_arr(value) { return .array }
    if unsafe_yyjson_is_bool(value) { return .bool }
    return .null
  }

  /// The first member of that name; nil if it is absent or this is no object. A literal takes this overload.
  public subscript(_ name: StaticString) -> JSONView? {
    name.withUTF8Buffer { member(named: $0) }
  }

  /// The first member of that name; nil if it is absent or this is no object.
  @_disfavoredOverload
  public subscript(_ name: String) -> JSONView? {
    var name = name
    return name.withUTF8 { member(named: $0) }
  }

  private func member(named name: UnsafeBufferPointer<UInt8>) -> JSONView? {
    guard unsafe_yyjson_is_obj(value) else { return nil }
    // An empty Swift buffer may have no address, and yyjson takes a null name for "no such member".
    var nothing: CChar = 0
    let found =
      name.isEmpty
      ? yyjson_obj_getn(value, &nothing, 0)
      : UnsafeRawBufferPointer(name).withMemoryRebound(to: CChar.self) {
        yyjson_obj_getn(value, $0.baseAddress, $0.count)
      }
    return found.map { JSONView(storage, $0) }
  }

  public var isNull: Bool { unsafe_yyjson_is_null(value) }

  public var bool: Bool? {
    unsafe_yyjson_is_bool(value) ? unsafe_yyjson_get_bool(value) : nil
  }

  public var string: String? {
    unsafe_yyjson_is_str(value) ? String(decoding: textBuffer(of: value), as: UTF8.self) : nil
  }

  /// The UTF-8 bytes of a string, escapes resolved.
  public var utf8: [UInt8]? {
    unsafe_yyjson_is_str(value) ? Array(textBuffer(of: value)) : nil
  }

  /// Whether this is the string of exactly these bytes; builds no Swift string.
  public func isString(_ other: StaticString) -> Bool {
    guard unsafe_yyjson_is_str(value) else { return false }
    let text = textBuffer(of: value)
    return other.withUTF8Buffer { $0.count == text.count && $0.elementsEqual(text) }
  }

  /// A number written as a plain integer within `Int64`; nil for any other value, `1.0` and `1e3` among them.
  public var int64: Int64? {
    unsafe_yyjson_is_raw(value) ? JSONNumber.exactInteger(textBuffer(of: value)) : nil
  }

  /// A number of milliseconds, rounded down where it has a fraction: Xcode prints its dates with one.
  public var milliseconds: Int64? {
    unsafe_yyjson_is_raw(value) ? JSONNumber.floor(textBuffer(of: value)) : nil
  }

  /// A number as it was written.
  public var numberText: String? {
    unsafe_yyjson_is_raw(value) ? String(decoding: textBuffer(of: value), as: UTF8.self) : nil
  }

  /// Members of an object, elements of an array, zero for all else.
  public var count: Int { unsafe_yyjson_is_ctn(value) ? unsafe_yyjson_get_len(value) : 0 }

  /// The elements of an array; empty for all else.
  public var elements: [JSONView] {
    guard unsafe_yyjson_is_arr(value) else { return [] }
    var result: [JSONView] = []
    result.reserveCapacity(count)
    forEachChild(of: value) { _, child in
      result.append(JSONView(storage, child))
      return true
    }
    return result
  }

  /// The members of an object in document order, repeated names included; empty for all else.
  public var members: [(name: String, value: JSONView)] {
    guard unsafe_yyjson_is_obj(value) else { return [] }
    var result: [(name: String, value: JSONView)] = []
    result.reserveCapacity(count)
    forEachChild(of: value) { name, child in
      if let name { result.append((String(decoding: textBuffer(of: name), as: UTF8.self), JSONView(storage, child))) }
      return true
    }
    return result
  }

  /// The value by itself, independent of the document.
  public var json: JSON {
    switch kind {
    case .null: .null
    case .bool: .bool(unsafe_yyjson_get_bool(value))
    case .number: JSONNumber.json(textBuffer(of: value))
    case .string: .string(String(decoding: textBuffer(of: value), as: UTF8.self))
    case .array: .array(elements.map(\.json))
    case .object: .object(JSONObject(members: members.map { ($0.name, $0.value.json) }))
    }
  }

  /// Compact JSON of this value: numbers exactly as they were written, escapes in the one form ``JSONWriter`` uses,
  /// members in document order.
  public var text: [UInt8] {
    var length = 0
    guard let written = yyjson_val_write(value, YYJSON_WRITE_NOFLAG, &length) else {
      // Reading checked the UTF-8 and left no value that can't be written; only memory can have run out.
      preconditionFailure("out of memory while writing JSON")
    }
    defer { free(written) }
    return Array(UnsafeRawBufferPointer(start: written, count: length))
  }
}
