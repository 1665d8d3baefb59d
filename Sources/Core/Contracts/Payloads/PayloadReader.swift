import PurchasesCore
import PurchasesJSON

/// Hands the members of one object to a model and remembers what it asked for and what it could not get. An explicit `null`
/// counts as absent.
public struct PayloadReader {
  private let view: JSONView?
  private let path: String
  private(set) var members: [PayloadMember] = []
  private(set) var findings = PayloadFindings()

  init(_ view: JSONView?, path: String = "") {
    self.view = view
    self.path = path
  }

  public mutating func text(_ name: StaticString) -> String? { read(name, .text) { $0.string } }

  public mutating func id(_ name: StaticString) -> String? { read(name, .id) { $0.string } }

  public mutating func proof(_ name: StaticString) -> String? { read(name, .proof) { $0.string } }

  public mutating func integer(_ name: StaticString) -> Int64? { read(name, .integer) { $0.int64 } }

  public mutating func milliunits(_ name: StaticString) -> Int64? { read(name, .milliunits) { $0.int64 } }

  public mutating func flag(_ name: StaticString) -> Bool? { read(name, .flag) { $0.bool } }

  public mutating func date(_ name: StaticString) -> Instant? {
    read(name, .date) { $0.milliseconds.map(Instant.init(milliseconds:)) }
  }

  public mutating func listed<Known>(_ name: StaticString, _: Known.Type = Known.self) -> Stated<Known>?
  where Known.RawValue == String {
    note(read(name, .listed) { $0.string.map(Stated<Known>.init) }, name)
  }

  public mutating func listed<Known>(_ name: StaticString, _: Known.Type = Known.self) -> Stated<Known>?
  where Known.RawValue == Int64 {
    note(read(name, .listed) { $0.int64.map(Stated<Known>.init) }, name)
  }

  /// The environment, and Apple's product types, have a home of their own in the core.
  public mutating func environment(_ name: StaticString) -> Stated<Environment>? { listed(name) }

  public mutating func productType(_ name: StaticString) -> ProductType? {
    guard let type = read(name, .listed, { $0.string.map { ProductType(apple: $0) } }) else { return nil }
    if case .unknown = type { findings.unknownValues.append(place("\(name)")) }
    return type
  }

  public mutating func object<Model: PayloadModel>(_ name: StaticString, _: Model.Type = Model.self) -> Model? {
    guard let value = read(name, .object, { $0.kind == .object ? $0 : nil }) else { return nil }
    return nested(value, place("\(name)"))
  }

  /// Elements that are not objects are left out and named.
  public mutating func objects<Model: PayloadModel>(_ name: StaticString, _: Model.Type = Model.self) -> [Model]? {
    elements(name) { reader, element, place in
      element.kind == .object ? reader.nested(element, place) : nil
    }
  }

  public mutating func texts(_ name: StaticString) -> [String]? {
    elements(name) { _, element, _ in element.string }
  }

  private mutating func elements<Element>(
    _ name: StaticString, _ body: (inout PayloadReader, JSONView, String) -> Element?
  ) -> [Element]? {
    guard let value = read(name, .list, { $0.kind == .array ? $0 : nil }) else { return nil }
    var result: [Element] = []
    for (index, element) in value.elements.enumerated() {
      let place = place("\(name)[\(index)]")
      if let read = body(&self, element, place) {
        result.append(read)
      } else {
        findings.unreadableMembers.append(place)
      }
    }
    return result
  }

  private mutating func nested<Model: PayloadModel>(_ value: JSONView, _ place: String) -> Model {
    var reader = PayloadReader(value, path: place)
    let model = Model(&reader)
    reader.noteUnknownMembers()
    findings.unknownMembers += reader.findings.unknownMembers
    findings.unknownValues += reader.findings.unknownValues
    findings.unreadableMembers += reader.findings.unreadableMembers
    return model
  }

  private mutating func read<Value>(
    _ name: StaticString, _ kind: PayloadMember.Kind, _ convert: (JSONView) -> Value?
  ) -> Value? {
    members.append(PayloadMember(name: "\(name)", kind: kind))
    guard let member = view?[name], !member.isNull else { return nil }
    guard let value = convert(member) else {
      findings.unreadableMembers.append(place("\(name)"))
      return nil
    }
    return value
  }

  private mutating func note<Known>(_ value: Stated<Known>?, _ name: StaticString) -> Stated<Known>? {
    if let value, value.known == nil { findings.unknownValues.append(place("\(name)")) }
    return value
  }

  mutating func noteUnknownMembers() {
    guard let view else { return }
    let known = Set(members.map(\.name))
    for member in view.members where !known.contains(member.name) {
      findings.unknownMembers.append(place(member.name))
    }
  }

  private func place(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }
}
