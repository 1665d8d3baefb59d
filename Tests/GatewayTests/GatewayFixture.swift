import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesGateway
import PurchasesHTTPClient
import PurchasesHTTPServer
import PurchasesJSON
import PurchasesTestKit

struct FixedClock: Clock {
  static let instant = Instant(milliseconds: 1_790_000_000_000)
  func now() -> Instant { Self.instant }
}

/// A gateway on a free port with a log and a store in memory, and a client to speak to it.
struct GatewayFixture {
  static let token = "a-token-of-some-length"
  static let account = "7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11"

  let producer = InMemoryProducer()
  let store = InMemoryStoreReader()
  let gateway: Gateway
  let client = HTTPClient(.init(totalSeconds: 50))

  init(
    maxBody: Int = 1 << 20, deliverySeconds: Double = 30, maxWaiters: Int = 512, maxLines: Int = 100,
    transferSeconds: Double = 30, hasStore: Bool = true, probes: Gateway.Probes = .init()
  ) throws {
    let settings = Gateway.Settings(
      http: .init(maxBody: maxBody, transferSeconds: transferSeconds), tokens: ["another-token-beside-it", Self.token],
      deliverySeconds: deliverySeconds, maxWaiters: maxWaiters, maxLines: maxLines)
    gateway = try Gateway(
      settings, producer: producer, store: hasStore ? store : nil, clock: FixedClock(), probes: probes)
  }

  func send(
    _ method: String, _ path: String, _ body: String? = nil, type: String? = "application/json",
    token: String? = Self.token, headers: [HTTPCall.Header] = []
  ) throws -> (status: Int, json: JSON?, answer: HTTPAnswer) {
    var all = headers
    if let type, body != nil { all.append(("content-type", type)) }
    if let token { all.append(("authorization", "Bearer " + token)) }
    let answer = try client.send(
      HTTPCall(method, "http://127.0.0.1:\(gateway.port)\(path)", headers: all, body: body.map { Array($0.utf8) }))
    return (answer.status, try? JSON(parsing: answer.body), answer)
  }

  /// A compact JWS whose signature nobody has made: the gateway must not care.
  static func jws(_ payload: String) -> String {
    [#"{"alg":"ES256"}"#, payload, "no signature"].map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
  }

  static func transaction(_ id: String, original: String? = nil, environment: String = "Production") -> String {
    jws(
      #"{"transactionId":"\#(id)","originalTransactionId":"\#(original ?? id)","environment":"\#(environment)"}"#)
  }

  static func purchased(_ id: String, account: String = Self.account, extra: String = "") -> String {
    #"{"type":"payment.purchased","environment":"Production","account":"\#(account)","transactionId":"\#(id)","#
      + #""productId":"coins","signedTransaction":"\#(transaction(id))"\#(extra)}"#
  }

  /// The account's row, and the catalogue that it names.
  func account(_ state: AccountState = AccountState(), version: Int64 = 3) throws {
    store.put(try Self.accountRow(Self.account, state, version: version))
    store.put(Self.catalogueRow)
  }

  static func accountRow(_ name: String, _ state: AccountState = AccountState(), version: Int64 = 3) throws -> Row {
    guard let account = Account(name) else { throw CocoaError(.formatting) }
    return AccountRow(
      environment: .production, account: account, partition: 0, version: version, catalogueVersion: "c1",
      isWaiting: false, state: state
    ).row
  }

  static let catalogueRow = Row(
    RowKey(.catalogue, [.text("c1")]),
    [.integer(1), .bytes(Array(#"{"version":"c1","products":[]}"#.utf8)), .integer(1)])

  func permit(
    proof: String, status: String, content: String = "granted", transaction: String = "1", decidedAt: Int64 = 1000
  ) {
    let key = RowKey(.permit, [.text("Production"), .text(Self.account), .text(proof)])
    store.put(
      Row(
        key,
        Table.permit.columns.map { column in
          switch column.name {
          case "status": .text(status)
          case "content": .text(content)
          case "reason": .text("granted")
          case "transaction": .text(transaction)
          case "product": .text("coins")
          case "event": .text("e1")
          case "decided_at": .integer(decidedAt)
          default: .null
          }
        }))
  }
}

// Expected answers read best as literals.
extension JSON: ExpressibleByStringLiteral, ExpressibleByDictionaryLiteral {
  public init(stringLiteral value: String) { self = .string(value) }
  public init(dictionaryLiteral elements: (String, JSON)...) { self = .object(JSONObject(elements)) }
}
