import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// One digest over the state of all accounts at an instant: two stores that agree on it give everybody the same.
///
/// Per account, in byte order of environment and account: the entitlements active at the instant with their ends and
/// products, the balances that are not zero, the permits by proof and status. Versions, positions and ids are left out, and so
/// is a permit's content: whether the notification or the client's report came first shows in it. An account without any
/// of these counts as absent. The digest is a chain, `SHA-256(digest so far || account)`, that begins with the
/// SHA-256 of this format's name and the instant.
public struct StateDigest: Sendable, Hashable {
  public let at: Instant
  public private(set) var accounts: Int64 = 0
  private var digest: [UInt8]
  private var last: (String, String)?

  public init(at instant: Instant) {
    at = instant
    digest = SHA256.digest("purchases/state/2\n\(instant.rfc3339)").bytes
  }

  public static func == (a: StateDigest, b: StateDigest) -> Bool { a.at == b.at && a.digest == b.digest }
  public func hash(into hasher: inout Hasher) { hasher.combine(digest) }

  public var hex: String { Hex.encode(digest) }

  /// Accounts come in byte order of environment and account, each once, seen at the digest's instant.
  public mutating func add(_ view: AccountView) {
    precondition(view.at == at, "a view of another instant")
    let name = (view.environment.rawValue, view.account.text)
    if let last {
      precondition(
        last.0 == name.0
          ? last.1.utf8.lexicographicallyPrecedes(name.1.utf8) : last.0.utf8.lexicographicallyPrecedes(name.0.utf8),
        "accounts out of order")
    }
    last = name
    guard let bytes = Self.canonical(view) else { return }
    accounts += 1
    digest = SHA256.digest(digest + bytes).bytes
  }

  /// What the digest takes in of an account; nil for one that has nothing.
  public static func canonical(_ view: AccountView) -> [UInt8]? {
    let balances = view.balances.filter { $0.amount != 0 }
    guard !view.entitlements.isEmpty || !balances.isEmpty || !view.permits.isEmpty else { return nil }
    var writer = JSONWriter()
    writer.array { json in
      json.element(view.environment.rawValue)
      json.element(view.account.text)
      json.array { json in
        for (entitlement, state) in view.entitlements {
          json.array { json in
            json.element(entitlement.text)
            if let end = state.endsAt { json.element(end.milliseconds) } else { json.element(JSON.null) }
            if let product = state.product { json.element(product.text) } else { json.element(JSON.null) }
          }
        }
      }
      json.array { json in
        for balance in balances {
          json.array { json in
            json.element(balance.unit.text)
            json.element(balance.amount)
          }
        }
      }
      json.array { json in
        for row in view.permits {
          json.array { json in
            json.element(row.permit.proof)
            json.element(row.permit.status.rawValue)
          }
        }
      }
    }
    return writer.bytes
  }

  /// Over a whole store as it stands now.
  public static func compute(
    _ reader: any StoreReader, history: CatalogueHistory, at instant: Instant
  ) throws(StoreFailure) -> StateDigest {
    // Rows of some kilobytes at most: a page is a few megabytes.
    let page = 1_000
    var digest = StateDigest(at: instant)
    var after: [Value]?
    while true {
      let rows = try reader.rows(.account, prefix: [], after: after, limit: page)
      for row in rows { digest.add(try reader.view(row, history: history, at: instant)) }
      guard rows.count == page, let last = rows.last else { return digest }
      after = last.key.values
    }
  }
}
