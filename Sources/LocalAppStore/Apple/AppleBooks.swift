import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Synchronization

/// What the local App Store has sold, sent and been told, in production and in the sandbox. In memory.
public final class AppleBooks: Sendable {
  /// One try to send a notification.
  public struct Attempt: Sendable, Hashable {
    public var at: Instant
    /// `SUCCESS`, `NO_RESPONSE`, …
    public var result: String

    public init(at: Instant, result: String) {
      self.at = at
      self.result = result
    }
  }

  struct Sold: Sendable {
    let payload: JSON
    let signed: String
    func text(_ name: String) -> String? { payload[name]?.string }
    func number(_ name: String) -> Int64? { payload[name]?.int64 }
    /// Whose it is: by the app transaction, else by the chain.
    var customer: String? { text("appTransactionId") ?? text("originalTransactionId") }
  }

  struct Sent: Sendable {
    let type: String
    let subtype: String?
    let at: Instant
    let transactions: Set<String>
    let signed: String
    var attempts: [Attempt]
    var isDelivered: Bool { attempts.contains { $0.result == "SUCCESS" } }
  }

  /// What a client sent, as it came.
  public struct Told: Sendable, Hashable {
    public let call: String
    public let transaction: String
    public let body: [UInt8]
  }

  struct Side: Sendable {
    var sold: [Sold] = []
    var renewals: [String: String] = [:]
    var sent: [Sent] = []
    var told: [Told] = []
    var answers: [String: [UInt8]] = [:]
    var orders: [String: [String]] = [:]
    var appTransactions: [String: String] = [:]
    var tests: [String: Int] = [:]
  }

  public let authority: LocalAuthority
  private let sides = Mutex<[Environment: Side]>([:])

  public init(_ authority: LocalAuthority) { self.authority = authority }

  func read<Result: Sendable>(_ environment: Environment, _ body: @Sendable (Side) -> Result) -> Result {
    sides.withLock { body($0[environment] ?? Side()) }
  }

  func change(_ environment: Environment, _ body: @Sendable (inout Side) -> Void) {
    sides.withLock { body(&$0[environment, default: Side()]) }
  }

  /// Keeps a transaction; a later payload under its id takes its place. The environment is the payload's own.
  ///
  /// - Returns: the signed transaction.
  @discardableResult
  public func sell(_ payload: [UInt8], order: String? = nil) throws(SigningFailure) -> String {
    let signed = try authority.sign(.transaction, payload: payload)
    let json = try Self.object(payload)
    let sold = Sold(payload: json, signed: signed)
    change(Self.environment(json)) { side in
      side.sold.removeAll { $0.text("transactionId") == sold.text("transactionId") }
      side.sold.append(sold)
      if let order, let id = sold.text("transactionId") { side.orders[order, default: []].append(id) }
    }
    return signed
  }

  /// Keeps the newest renewal info of a chain.
  @discardableResult
  public func note(renewal payload: [UInt8]) throws(SigningFailure) -> String {
    let signed = try authority.sign(.renewalInfo, payload: payload)
    let json = try Self.object(payload)
    if let original = json["originalTransactionId"]?.string {
      change(Self.environment(json)) { $0.renewals[original] = signed }
    }
    return signed
  }

  /// Keeps the customer's app transaction, by the id that it has.
  @discardableResult
  public func note(appTransaction payload: [UInt8]) throws(SigningFailure) -> String {
    let signed = try authority.sign(.appTransaction, payload: payload)
    let json = try Self.object(payload)
    let environment = json["receiptType"]?.string.flatMap { Environment(rawValue: $0) } ?? .production
    if let id = json["appTransactionId"]?.string { change(environment) { $0.appTransactions[id] = signed } }
    return signed
  }

  /// Puts a notification into the history, whether or not it was ever delivered.
  ///
  /// - Returns: the signed body: the same bytes that were, or would have been, sent.
  @discardableResult
  public func send(_ payload: [UInt8], at: Instant, attempts: [Attempt] = []) throws(SigningFailure) -> String {
    let signed = try authority.sign(.notification, payload: payload)
    let json = try Self.object(payload)
    record(signed, json, at: at, attempts)
    return signed
  }

  func record(_ signed: String, _ json: JSON, at: Instant, _ attempts: [Attempt]) {
    let body = json["data"] ?? json["summary"] ?? json["appData"]
    let environment = body?["environment"]?.string.flatMap { Environment(rawValue: $0) } ?? .production
    let transaction = body?["signedTransactionInfo"].flatMap { value -> JSON? in
      if value.object != nil { return value }
      return value.string.flatMap { try? CompactJWS(parsing: $0) }.flatMap { try? JSON(parsing: $0.payload) }
    }
    let ids = ["transactionId", "originalTransactionId"].compactMap { transaction?[$0]?.string }
    let sent = Sent(
      type: json["notificationType"]?.string ?? "", subtype: json["subtype"]?.string, at: at, transactions: Set(ids),
      signed: signed, attempts: attempts)
    change(environment) { $0.sent.append(sent) }
  }

  /// What `verifyReceipt` answers for a receipt of that environment: a JSON document with its status.
  public func issue(receipt encoded: String, in environment: Environment, answer: [UInt8]) {
    change(environment) { $0.answers[encoded] = answer }
  }

  /// What clients sent, in the order in which it came.
  public func told(_ environment: Environment) -> [Told] { read(environment) { $0.told } }

  static func object(_ payload: [UInt8]) throws(SigningFailure) -> JSON {
    do { return try JSON(parsing: payload) } catch { throw .notJSON(error.description) }
  }

  static func environment(_ json: JSON) -> Environment {
    json["environment"]?.string.flatMap { Environment(rawValue: $0) } ?? .production
  }
}
