/// The members of a JSON object in the order they were written. Equality is sensitive to that order; to compare without
/// it, compare ``JSON/canonicalBytes``.
public struct JSONObject: Sendable, Hashable, ExpressibleByDictionaryLiteral {
  struct Member: Sendable, Hashable {
    let name: String
    var value: JSON
  }

  private var storage: [Member]

  public init() { storage = [] }

  public init(_ members: [(String, JSON)]) {
    storage = members.map { Member(name: $0.0, value: $0.1) }
  }

  public init(members: [(name: String, value: JSON)]) {
    storage = members.map { Member(name: $0.name, value: $0.value) }
  }

  public init(dictionaryLiteral elements: (String, JSON)...) { self.init(elements) }

  public var members: [(name: String, value: JSON)] { storage.map { ($0.name, $0.value) } }

  public var count: Int { storage.count }

  public var isEmpty: Bool { storage.isEmpty }

  /// The first member of that name. Setting replaces it in its place or appends; setting nil removes every member of
  /// the name. Names are compared byte for byte: two spellings of one character are two names, as on the wire.
  public subscript(_ name: String) -> JSON? {
    get { storage.first { $0.name.utf8.elementsEqual(name.utf8) }?.value }
    set {
      guard let newValue else {
        storage.removeAll { $0.name.utf8.elementsEqual(name.utf8) }
        return
      }
      if let index = storage.firstIndex(where: { $0.name.utf8.elementsEqual(name.utf8) }) {
        storage[index].value = newValue
      } else {
        storage.append(Member(name: name, value: newValue))
      }
    }
  }
}
