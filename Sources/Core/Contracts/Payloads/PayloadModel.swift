import PurchasesJSON

/// What Apple documents of one JSON object that it signs. Reading is total: whatever object comes, a model comes out; a
/// member that is not of the documented kind is nil in it and named beside it. The payload itself is kept as it was signed,
/// so nothing that a model doesn't hold is lost.
public protocol PayloadModel: Sendable, Hashable {
  init(_ reader: inout PayloadReader)
}

extension PayloadModel {
  /// The members that the model reads, in its order. Never the model's own opinion: it is what reading asks for.
  public static var members: [PayloadMember] {
    var reader = PayloadReader(nil)
    _ = Self(&reader)
    return reader.members
  }
}

/// A member of a payload that a model knows.
public struct PayloadMember: Sendable, Hashable {
  public enum Kind: String, Sendable, Hashable, CaseIterable {
    case text
    /// Always a string, though it looks like a number: family-shared ones pass 2^53.
    case id
    case integer
    /// Thousandths of the currency's unit.
    case milliunits
    case flag
    /// Milliseconds since 1970; a fraction, which Xcode writes, is cut towards the past.
    case date
    /// One of Apple's words or numbers; others are kept.
    case listed
    case object
    case list
    /// A compact JWS, judged in its own right.
    case proof
  }

  public let name: String
  public let kind: Kind
}

/// What a model couldn't hold of a payload. Paths lead from the payload: `items[2].price`.
public struct PayloadFindings: Sendable, Hashable {
  /// Members that the model doesn't know.
  public internal(set) var unknownMembers: [String] = []
  /// Members whose value Apple's documentation doesn't list; the model has them raw.
  public internal(set) var unknownValues: [String] = []
  /// Members that are not of the documented kind, such as text for a date; in the model they are nil.
  public internal(set) var unreadableMembers: [String] = []

  public var isEmpty: Bool { unknownMembers.isEmpty && unknownValues.isEmpty && unreadableMembers.isEmpty }
}

/// A payload in its model, and what the model couldn't hold.
public struct PayloadReading<Model: PayloadModel>: Sendable, Hashable {
  public let model: Model
  public let findings: PayloadFindings

  /// Anything but a JSON object reads as an empty one.
  public init(_ view: JSONView) {
    var reader = PayloadReader(view)
    model = Model(&reader)
    reader.noteUnknownMembers()
    findings = reader.findings
  }
}
