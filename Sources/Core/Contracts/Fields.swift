import PurchasesCore
import PurchasesJSON

/// A member of an event or payload that is not what it must be. Names the member and why; never holds its value.
public struct FieldFailure: Error, Sendable, Hashable, CustomStringConvertible {
  public let field: String
  public let reason: String

  public init(_ field: String, _ reason: String) {
    self.field = field
    self.reason = reason
  }

  public var description: String { "\(field): \(reason)" }
}

/// Reads members of a JSON object with their rules. An explicit `null` counts as absent.
public struct Fields {
  public let view: JSONView
  private let path: String

  public init(_ view: JSONView, path: String = "") throws(FieldFailure) {
    guard view.kind == .object else { throw FieldFailure(path.isEmpty ? "event" : path, "must be a JSON object") }
    self.view = view
    self.path = path
  }

  /// Parses a whole event.
  public init(parsing bytes: [UInt8]) throws(FieldFailure) {
    do {
      try self.init(JSONDocument(parsing: bytes).root)
    } catch let error as JSONError {
      throw FieldFailure("event", "is not JSON (byte \(error.offset): \(error.reason))")
    } catch let error as FieldFailure {
      throw error
    } catch {
      throw FieldFailure("event", "is not JSON")
    }
  }

  public func name(_ field: StaticString) -> String { path.isEmpty ? "\(field)" : "\(path).\(field)" }

  public func failure(_ field: StaticString, _ reason: String) -> FieldFailure { FieldFailure(name(field), reason) }

  public func member(_ field: StaticString) -> JSONView? {
    guard let value = view[field], !value.isNull else { return nil }
    return value
  }

  public func object(_ field: StaticString) throws(FieldFailure) -> Fields? {
    guard let value = member(field) else { return nil }
    return try Fields(value, path: name(field))
  }

  /// Longer than any text of Apple's that is kept as a member of its own.
  public static let maximumTextBytes = 1024

  public func text(_ field: StaticString, maximumBytes: Int = Fields.maximumTextBytes) throws(FieldFailure) -> String? {
    guard let value = member(field) else { return nil }
    guard let text = value.string else { throw failure(field, "must be a string") }
    guard !text.isEmpty else { throw failure(field, "must not be empty") }
    guard text.utf8.count <= maximumBytes else { throw failure(field, "is longer than \(maximumBytes) bytes") }
    // PostgreSQL has no U+0000 in text: what gets in here must fit into every store.
    guard !text.hasZeroByte else { throw failure(field, "must not hold U+0000") }
    return text
  }

  public func requiredText(_ field: StaticString, maximumBytes: Int = Fields.maximumTextBytes) throws(FieldFailure)
    -> String
  {
    guard let text = try text(field, maximumBytes: maximumBytes) else { throw failure(field, "is missing") }
    return text
  }

  public func integer(_ field: StaticString) throws(FieldFailure) -> Int64? {
    guard let value = member(field) else { return nil }
    guard let number = value.int64 else { throw failure(field, "must be a whole number") }
    return number
  }

  public func flag(_ field: StaticString) throws(FieldFailure) -> Bool? {
    guard let value = member(field) else { return nil }
    guard let flag = value.bool else { throw failure(field, "must be true or false") }
    return flag
  }

  public func identifier<ID: Identifier>(_ field: StaticString, _: ID.Type = ID.self) throws(FieldFailure) -> ID? {
    guard let value = member(field) else { return nil }
    guard let text = value.string else { throw failure(field, "must be a string") }
    guard let id = ID(text) else {
      throw failure(
        field, "must be 1 to \(IdentifierRule.maximumBytes) visible ASCII characters without '/'")
    }
    return id
  }

  public func required<ID: Identifier>(_ field: StaticString, _: ID.Type = ID.self) throws(FieldFailure) -> ID {
    guard let id: ID = try identifier(field) else { throw failure(field, "is missing") }
    return id
  }

  public func environment(_ field: StaticString = "environment") throws(FieldFailure) -> Environment? {
    guard let text = try text(field) else { return nil }
    guard let environment = Environment(rawValue: text) else {
      throw failure(field, "must be one of \(Environment.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return environment
  }

  public func requiredEnvironment() throws(FieldFailure) -> Environment {
    guard let environment = try environment() else { throw failure("environment", "is missing") }
    return environment
  }

  /// RFC 3339 text.
  public func instant(_ field: StaticString) throws(FieldFailure) -> Instant? {
    guard let text = try text(field) else { return nil }
    guard let instant = Instant(rfc3339: text) else {
      throw failure(field, "must be a time as RFC 3339 writes it, such as 2026-11-30T02:29:41Z")
    }
    return instant
  }

  /// Epoch milliseconds, as Apple's payloads hold them; Xcode's have a fraction.
  public func milliseconds(_ field: StaticString) throws(FieldFailure) -> Instant? {
    guard let value = member(field) else { return nil }
    guard let number = value.milliseconds else { throw failure(field, "must be a number of milliseconds") }
    return Instant(milliseconds: number)
  }
}

extension JSONWriter {
  public mutating func field(_ name: StaticString, rfc3339 instant: Instant?) { field(name, instant?.rfc3339) }
  public mutating func field(_ name: StaticString, milliseconds instant: Instant?) {
    field(name, instant?.milliseconds)
  }
}

/// What event data is written with, for rooms that know events and not the encoding below them.
public typealias EventWriter = JSONWriter
