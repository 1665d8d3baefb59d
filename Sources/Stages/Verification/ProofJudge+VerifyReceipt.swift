import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

// The oldest receipts: nothing in them can be checked here, so the App Store is asked and its answer judged. The answer
// stands in the evidence, so that the verdict can be judged again without asking.

extension ProofJudge {
  /// What must be asked before this receipt can be judged; nil for one of another kind.
  public func verifyReceiptQuestion(_ receipt: [UInt8]) -> AppStoreQuestion? {
    guard case .oldest(let text)? = try? ReceiptText(receipt) else { return nil }
    // Without the line breaks that an encoder put in.
    return .receipt(Array(Base64.encode(text).utf8))
  }

  /// Why the App Store's answer is for people to look at: neither a verdict, nor worth asking for again.
  public func verifyReceiptFault(_ answer: AppStoreAnswer?) -> String? {
    guard case .given(let response) = answer, let found = Self.read(response) else { return nil }
    switch found.status {
    case .isSandbox, .isProduction:
      return "verifyReceipt: production and sandbox each say that the receipt is the other's"
    case .notRetryable(let status): return "verifyReceipt: status \(status), and is_retryable is false"
    case .valid, .validExpired:
      return found.agrees ? nil : "verifyReceipt: the answer names another environment than the one that gave it"
    default: return nil
    }
  }

  private static func read(_ response: AppStoreResponse) -> VerifyReceiptAnswer? {
    guard let environment = response.environment else { return nil }
    return try? VerifyReceiptAnswer(parsing: response.body, from: environment)
  }

  func oldest(
    _ text: [UInt8], _ digest: String, _ answer: AppStoreAnswer?, _ asked: Asked, _ evidence: inout Evidence
  ) throws(Halt) -> VerifiedProof {
    evidence.verifyReceipt = Self.told(answer)
    let response: AppStoreResponse
    switch answer {
    case nil: throw .waiting(.needsVerifyReceipt, until: .distantFuture)
    case .unavailable: throw .waiting(.verifyReceiptUnknown, until: .distantFuture)
    case .given(let given): response = given
    }
    guard let answer = Self.read(response) else { throw .waiting(.verifyReceiptUnknown, until: .distantFuture) }
    switch answer.status {
    case .valid, .validExpired: return try verified(answer, response, digest, asked, &evidence)
    case .notAuthentic: throw .refused(.receipt(.notAuthentic), field: nil)
    case .accountUnknown: throw .refused(.receipt(.accountUnknown), field: nil)
    case .malformedOrBusy where !OldestReceipt.isWellFormed(text):
      throw .refused(.receipt(.oldestMalformed), field: nil)
    default: throw .waiting(.verifyReceiptUnknown, until: .distantFuture)
    }
  }

  private func verified(
    _ answer: VerifyReceiptAnswer, _ response: AppStoreResponse, _ digest: String, _ asked: Asked,
    _ evidence: inout Evidence
  ) throws(Halt) -> VerifiedProof {
    guard answer.agrees else { throw .waiting(.verifyReceiptUnknown, until: .distantFuture) }
    try accept(answer.environment, "environment", isLocal: false)
    guard let bundleID = answer.bundleID else { throw .claim(.missingField, "bundleId") }
    guard settings.apps.contains(where: { $0.bundleID == bundleID }) else { throw .claim(.wrongBundle, "bundleId") }
    // What Apple says now it says as of now; these receipts have no date of their own.
    let date = answer.requestDate ?? response.at
    evidence.signedDate = date
    var content = AppReceipt()
    content.bundleID = bundleID
    content.purchases = Self.purchases(answer)
    let parts: [(part: SignedPart, revision: TransactionRevision)]
    do {
      parts = try content.parts(
        digest: digest, environment: answer.environment, signed: date, source: asked.source)
    } catch { throw .field(error) }
    return VerifiedProof(
      kind: .appReceipt, environment: answer.environment, signedDate: date, digest: digest, parts: parts.map(\.part),
      notification: nil, body: nil, transaction: nil, originalTransaction: nil, evidence: evidence.json,
      purchases: parts.map(\.revision))
  }

  /// Each transaction once: what stands later in the answer is the newer state of it.
  private static func purchases(_ answer: VerifyReceiptAnswer) -> [AppReceipt.Purchase] {
    var purchases: [AppReceipt.Purchase] = []
    for listed in answer.purchases + answer.latest {
      let purchase = AppReceipt.Purchase(listed)
      if let index = purchases.firstIndex(where: { $0.transaction == purchase.transaction }) {
        purchases[index] = purchase
      } else {
        purchases.append(purchase)
      }
    }
    return purchases
  }

  private static func told(_ answer: AppStoreAnswer?) -> JSON {
    switch answer {
    case nil: notAsked("nobody is set up to ask the App Store")
    case .unavailable(let why): .object(["answer": .string("none"), "why": .string(why)])
    case .given(let response):
      .object([
        "answer": .string("given"), "environment": .string(response.environment?.rawValue ?? ""),
        "at": .integer(response.at.milliseconds), "response": .string(SHA256.digest(response.body).hex),
        "body": .string(String(decoding: response.body, as: UTF8.self)),
      ])
    }
  }
}

extension AppReceipt.Purchase {
  fileprivate init(_ listed: VerifyReceiptTransaction) {
    self.init()
    quantity = listed.quantity
    product = listed.product
    transaction = listed.transaction
    purchaseDate = listed.purchaseDate
    originalTransaction = listed.originalTransaction
    originalPurchaseDate = listed.originalPurchaseDate
    expiresDate = listed.expiresDate
    webOrderLineItem = listed.webOrderLineItem.flatMap { UInt64($0) }
    cancellationDate = listed.cancellationDate
    isTrial = listed.isTrialPeriod
    isIntroductory = listed.isInIntroOfferPeriod
    promotionalOffer = listed.promotionalOffer
  }
}

/// What can be told of the oldest receipts without the App Store: whether they have the form.
enum OldestReceipt {
  /// Names that every one has, with base64 behind them.
  private static let names = ["signature", "purchase-info"]

  static func isWellFormed(_ text: [UInt8]) -> Bool {
    guard let text = String(validating: text, as: UTF8.self) else { return false }
    var values: [String: String] = [:]
    for entry in text.split(separator: ";") {
      let parts = entry.split(separator: "\"", omittingEmptySubsequences: false)
      // "name" = "value"
      if parts.count == 5, parts[2].allSatisfy({ $0 == " " || $0 == "=" }) {
        values[String(parts[1])] = String(parts[3])
      }
    }
    return names.allSatisfy { values[$0].flatMap { Base64.decode($0) }?.isEmpty == false }
  }
}
