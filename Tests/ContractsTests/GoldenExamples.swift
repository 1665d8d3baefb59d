import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

/// The typed values behind the files in `Schemas/examples`: one story, told by each event in turn. The files were written
/// by hand and not by these codecs; what they share is the proofs, which are read from the received events.
struct GoldenExamples {
  let ann: Account
  let bob: Account
  let coins: Proof
  let pro: Proof
  let gold: Proof
  let goldInfo: Proof
  let renewal: Proof
  let coinsReceipt: String
  let environment = Environment.production

  /// A signed payload of the story.
  struct Proof {
    let jws: String
    let payload: [UInt8]
    let view: JSONView

    init(_ jws: String) throws {
      self.jws = jws
      let segments = jws.split(separator: ".")
      payload = try #require(Base64URL.decode(Array(segments[1].utf8)))
      view = try JSONDocument(parsing: payload).root
    }

    var digest: String { SHA256.digest(jws).hex }

    func nested(_ member: String) throws -> Proof {
      let jws = try #require(view["data"]?[member]?.string)
      return try Proof(jws)
    }

    /// A notification's payload without the proofs inside.
    func body() throws -> [UInt8] {
      var members = try #require(view.json.object)
      var data = try #require(members["data"]?.object)
      for name in ["signedTransactionInfo", "signedRenewalInfo"] { data[name] = nil }
      members["data"] = .object(data)
      return JSON.object(members).bytes
    }

    func part(_ kind: ProofKind, _ source: RevisionSource) -> SignedPart {
      SignedPart(kind: kind, digest: digest, source: source, payload: payload)
    }
  }

  init() throws {
    func proof(_ example: String, _ member: String) throws -> Proof {
      let document = try JSONDocument(parsing: SchemaFolder.example(example))
      return try Proof(#require(document.root[member]?.string))
    }
    ann = try #require(Account("7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11"))
    bob = try #require(Account("c0a8f3d2-64be-4c19-8f27-5e1d9b7a3304"))
    coins = try proof("payment.purchased.v1", "signedTransaction")
    pro = try proof("payment.restored.v1", "signedTransaction")
    renewal = try proof("store.notified.v1", "signedPayload")
    coinsReceipt = try #require(
      JSONDocument(parsing: SchemaFolder.example("payment.purchased.v1.receipt")).root["appReceipt"]?.string)
    gold = try renewal.nested("signedTransactionInfo")
    goldInfo = try renewal.nested("signedRenewalInfo")
  }

  /// One example: its file without the ending, its type, and what our codec writes.
  struct Example {
    let name: String
    let type: EventType
    let data: [UInt8]
  }

  func all() throws -> [Example] {
    try received().map { Example(name: $0.key, type: $0.value.type, data: $0.value.data) }
      + verified().map { Example(name: $0.key, type: $0.value.type, data: $0.value.data) }
      + owned().map { Example(name: $0.key, type: $0.value.type, data: $0.value.data) }
      + entitlements().map { Example(name: $0.key, type: $0.value.type, data: $0.value.data) }
      + [Example(name: "catalogue.published.v1", type: .cataloguePublished, data: catalogue().data)]
      + audit().map { Example(name: $0.key, type: $0.value.type, data: $0.value.data) }
  }

  /// What the codec makes of data that it reads.
  static func rewritten(_ type: EventType, _ name: String, _ data: [UInt8]) throws(FieldFailure) -> [UInt8] {
    switch type {
    case _ where EventType.receivable.contains(type): try ReceivedEvent(type: type, data: data).data
    case .factNoted where name.contains(".owned"): try OwnedEvent(type: type, data: data).data
    case .purchaseVerified, .purchaseRejected, .purchasePending, .factNoted:
      try VerifiedEvent(type: type, data: data).data
    case .purchaseOwned, .purchaseTransferred, .purchaseUnowned, .clockTicked, .consentRescinded:
      try OwnedEvent(type: type, data: data).data
    case .auditCheckpointed, .auditAnomalyFound: try AuditEvent(type: type, data: data).data
    case .cataloguePublished: try CataloguePublished(type: type, data: data).data
    default: try EntitlementEvent(type: type, data: data).data
    }
  }

  func instant(_ text: String) throws -> Instant { try #require(Instant(rfc3339: text)) }
  func id<ID: Identifier>(_ text: String, _: ID.Type = ID.self) throws -> ID { try #require(ID(text)) }
}
