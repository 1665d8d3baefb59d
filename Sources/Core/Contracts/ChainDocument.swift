import PurchasesCore
import PurchasesJSON

/// A row of the table `chain`: whose a purchase is, and what is known of it, whole, for whoever comes to own it.
public struct ChainRow: Sendable, Hashable {
  /// The newest statement about one purchase of the chain, or (without a part) about how it goes on.
  public struct Kept: Sendable, Hashable {
    /// `BusinessKey.part`; nil for renewal info.
    public var part: String?
    public var rank: RevisionRank
    public var signed: SignedPart

    public init(part: String?, rank: RevisionRank, signed: SignedPart) {
      self.part = part
      self.rank = rank
      self.signed = signed
    }
  }

  public var environment: Environment
  public var originalTransaction: OriginalTransactionID
  /// The owner as it was written to the topic, merged accounts looked up; nil: in escrow.
  public var account: Account?
  public var basis: OwnershipBasis
  public var unownedSince: Instant?
  public var ownership: Ownership
  /// In order of part, the renewal info first.
  public private(set) var kept: [Kept]
  /// Whether people were told that a token here is none: once is enough.
  public var hasToldOfToken = false

  public init(environment: Environment, originalTransaction: OriginalTransactionID) {
    self.environment = environment
    self.originalTransaction = originalTransaction
    basis = .none
    ownership = Ownership()
    kept = []
  }

  public var parts: [SignedPart] { kept.map(\.signed) }

  /// Whether a restore may give it to another account, as far as is known: nobody restores a consumable, and what has not
  /// been told to be something else may be one.
  public var isRestorable: Bool {
    var isKnown = false
    for statement in kept {
      guard let part = statement.part else {
        isKnown = true
        continue
      }
      if part.hasPrefix("item:") { return false }
      if !part.hasPrefix("other:") { isKnown = true }
    }
    return isKnown
  }

  /// Keeps a statement if it is the newest of its kind, whatever order statements come in; else says why it isn't.
  public mutating func keep(_ statement: Kept) -> SignedPart.Standing? {
    func isBefore(_ a: String?, _ b: String?) -> Bool {
      guard let a, let b else { return a == nil && b != nil }
      return a < b
    }
    let index = kept.firstIndex { !isBefore($0.part, statement.part) } ?? kept.count
    guard index < kept.count, kept[index].part == statement.part else {
      kept.insert(statement, at: index)
      return nil
    }
    let isCopy = kept[index].signed.digest == statement.signed.digest
    if kept[index].rank < statement.rank { kept[index] = statement } else if !isCopy { return .superseded }
    // Who brought it first may rank below who brings it again: it says the same.
    return isCopy ? .copy : nil
  }

  public static func key(_ environment: Environment, _ original: OriginalTransactionID) -> RowKey {
    RowKey(.chain, [.text(environment.rawValue), .text(original.text)])
  }

  /// - Throws: for a row that neither this program nor an older one wrote.
  public init(_ row: Row) throws(FieldFailure) {
    guard case .text(let name) = row.key.values[0], let environment = Environment(rawValue: name),
      case .text(let text) = row.key.values[1], let original = OriginalTransactionID(text),
      case .text(let basisName) = row.values[1], let basis = OwnershipBasis(rawValue: basisName),
      case .bytes(let document) = row.values[3]
    else { throw FieldFailure("chain", "has a column that is not what it must be") }
    self.init(environment: environment, originalTransaction: original)
    account = row.values[0].text.flatMap { Account($0) }
    self.basis = basis
    unownedSince = row.values[2].integer.map { Instant(milliseconds: $0) }
    let fields = try Fields(parsing: document)
    ownership = try Ownership(fields)
    hasToldOfToken = try fields.flag("toldOfToken") ?? false
    for element in fields.member("parts")?.elements ?? [] {
      let fields = try Fields(element)
      let signed = try SignedPart(fields)
      kept.append(
        Kept(
          part: try fields.text("part"),
          rank: RevisionRank(
            signedDate: try fields.requiredMilliseconds("signed"), isRevoked: try fields.flag("revoked") ?? false,
            source: signed.source, digest: signed.digest),
          signed: signed))
    }
  }

  /// Of a row, only whose the chain is: for who must know which accounts to look up.
  public static func ownership(_ row: Row) throws(FieldFailure) -> Ownership {
    guard case .bytes(let document) = row.values[3] else {
      throw FieldFailure("chain", "has a column that is not what it must be")
    }
    return try Ownership(Fields(parsing: document))
  }

  public var row: Row {
    var writer = JSONWriter(reserving: 256 + kept.reduce(0) { $0 + 256 + $1.signed.payload.count })
    writer.object { json in
      ownership.write(&json)
      if hasToldOfToken { json.field("toldOfToken", true) }
      json.field(
        "parts",
        array: { json in
          for statement in kept {
            json.object { json in
              json.field("part", statement.part)
              json.field("signed", milliseconds: statement.rank.signedDate)
              if statement.rank.isRevoked { json.field("revoked", true) }
              json.field("kind", statement.signed.kind.rawValue)
              json.field("digest", statement.signed.digest)
              json.field("source", statement.signed.source.name)
              json.field("payload", raw: statement.signed.payload)
            }
          }
        })
    }
    return Row(
      Self.key(environment, originalTransaction),
      [Value(account?.text), .text(basis.rawValue), Value(unownedSince), .bytes(writer.bytes)])
  }
}

extension Ownership {
  fileprivate init(_ fields: Fields) throws(FieldFailure) {
    var rank: RevisionRank?
    if let inner = try fields.object("tokenRank") {
      guard let source = RevisionSource(name: try inner.requiredText("source")) else {
        throw inner.failure("source", "is not a known source")
      }
      rank = RevisionRank(
        signedDate: try inner.requiredMilliseconds("signed"), isRevoked: try inner.flag("revoked") ?? false,
        source: source, digest: try inner.requiredText("digest"))
    }
    var claims: [Claim] = []
    for element in fields.member("claims")?.elements ?? [] {
      let claim = try Fields(element, path: "claims")
      claims.append(Claim(account: try claim.required("account"), source: try claim.requiredText("source")))
    }
    var order: Order?
    if let inner = try fields.object("order") {
      order = Order(
        to: try inner.required("to"), orderID: try inner.requiredText("orderId"),
        at: try inner.requiredMilliseconds("at"), overToken: try inner.identifier("overToken"))
    }
    var sharers: [Account] = []
    for element in fields.member("sharers")?.elements ?? [] {
      guard let account = element.string.flatMap({ Account($0) }) else {
        throw fields.failure("sharers", "must be accounts")
      }
      sharers.append(account)
    }
    self.init(
      token: try fields.identifier("token"), tokenRank: rank, claimant: try fields.identifier("claimant"),
      claims: claims, order: order, sharers: sharers, movedAt: try fields.milliseconds("movedAt"))
  }

  fileprivate func write(_ json: inout JSONWriter) {
    json.field("token", token?.text)
    if let rank = tokenRank {
      json.field(
        "tokenRank",
        object: { json in
          json.field("signed", milliseconds: rank.signedDate)
          if rank.isRevoked { json.field("revoked", true) }
          json.field("source", rank.source.name)
          json.field("digest", rank.digest)
        })
    }
    json.field("claimant", claimant?.text)
    json.field("movedAt", milliseconds: movedAt)
    if !claims.isEmpty {
      json.field(
        "claims",
        array: { json in
          for claim in claims {
            json.object { json in
              json.field("account", claim.account.text)
              json.field("source", claim.source)
            }
          }
        })
    }
    if let order {
      json.field(
        "order",
        object: { json in
          json.field("to", order.to.text)
          json.field("orderId", order.orderID)
          json.field("at", milliseconds: order.at)
          json.field("overToken", order.overToken?.text)
        })
    }
    if !sharers.isEmpty {
      json.field("sharers", array: { json in for account in sharers { json.element(account.text) } })
    }
  }
}
