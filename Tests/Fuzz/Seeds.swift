import Foundation
import PurchasesContracts
import PurchasesCryptography
import PurchasesJSON

/// Writes what the targets begin with into `Corpus/`; the same bytes each time.
///   Scripts/fuzz seeds
@main enum Seeds {
  static let transaction =
    #"{"transactionId":"2","originalTransactionId":"1","webOrderLineItemId":"3","bundleId":"com.example.app","productId":"p","#
    + #""subscriptionGroupIdentifier":"4","purchaseDate":1764460700000.5,"originalPurchaseDate":1764460700000,"#
    + #""expiresDate":1767052800000,"quantity":2,"type":"Auto-Renewable Subscription","inAppOwnershipType":"ASSIGNED","#
    + #""appAccountToken":"7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11","signedDate":1764460800000,"environment":"Production","#
    + #""revocationDate":1764460790000,"revocationReason":1,"revocationType":"REFUND_PRORATED","revocationPercentage":50000,"#
    + #""price":9990,"currency":"EUR","storefront":"DEU","offerType":1,"transactionReason":"PURCHASE","isUpgraded":false,"#
    + #""additionalTransactionReason":"SEAT_ADDITION","multiSeatInfo":{"invitationManagement":"APPLE","priceTiers":"#
    + #"[{"price":1,"quantity":2}]},"advancedCommerceInfo":{"items":[{"SKU":"s","refunds":[{"refundAmount":1}]}]}}"#
  static let renewal =
    #"{"originalTransactionId":"1","autoRenewProductId":"p","productId":"p","autoRenewStatus":1,"signedDate":1764460800000,"#
    + #""environment":"Production","gracePeriodExpiresDate":1764547200000,"isInBillingRetryPeriod":true,"renewalPrice":9990,"#
    + #""multiSeatInfo":{"renewalPriceTiers":[{"price":1,"quantity":2}]},"commitmentInfo":{"commitmentRenewalPrice":1}}"#
  static let app =
    #"{"receiptType":"Production","appAppleId":1234567890,"bundleId":"com.example.app","receiptCreationDate":1764460800000,"#
    + #""originalPlatform":"iOS","preorderDate":1,"appTransactionId":"7"}"#

  static func notification(_ type: String, _ body: String) -> String {
    #"{"notificationType":"\#(type)","subtype":"INITIAL_BUY","notificationUUID":"002e14d5-51f5-4503-b5a8-c3a1af68eb20","#
      + #""version":"2.0","signedDate":1764460800000,\#(body)}"#
  }

  static let place = #""appAppleId":1234567890,"bundleId":"com.example.app","environment":"Production""#

  static var notifications: [String] {
    let inner = [transaction, renewal].map { Place.sign(Array($0.utf8)) }
    let data =
      #""data":{\#(place),"status":1,"signedTransactionInfo":"\#(inner[0])","signedRenewalInfo":"\#(inner[1])"}"#
    return [
      notification("SUBSCRIBED", data), notification("TEST", #""data":{\#(place)}"#),
      notification("RENEWAL_EXTENSION", #""summary":{\#(place),"succeededCount":5,"storefrontCountryCodes":["DEU"]}"#),
      notification(
        "RESCIND_CONSENT", #""appData":{\#(place),"signedAppTransactionInfo":"\#(Place.sign(Array(app.utf8)))"}"#),
      notification(
        "EXTERNAL_PURCHASE_TOKEN",
        #""externalPurchaseToken":{"appAppleId":1234567890,"bundleId":"com.example.app","externalPurchaseId":"b","#
          + #""tokenCreationDate":1,"tokenType":"LINK_OUT"}"#),
    ]
  }

  static func main() throws {
    let folder = URL(fileURLWithPath: CommandLine.arguments[1])
    func write(_ target: String, _ name: String, _ bytes: [UInt8]) throws {
      let file = folder.appendingPathComponent(target).appendingPathComponent(name)
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(bytes).write(to: file)
    }
    let payloads = [transaction, renewal, app] + notifications
    for (index, payload) in payloads.enumerated() {
      try write("payload", "\(index)", [0] + Array(payload.utf8))
      try write("jws", "\(index)", Array(Place.sign(Array(payload.utf8)).utf8))
      try write("json", "payload-\(index)", Array(payload.utf8))
    }
    for (name, text) in [
      ("numbers", #"[0,-0,1.5,-1.5e3,1E400,123456789012345678901234567890,0.1e-7,9223372036854775807]"#),
      ("texts", #"["","\u0000\ud83d\ude00\n\"\\\/","é",{"":{"a":1,"a":2}}]"#), ("plain", "true"), ("space", " \n[ ] "),
    ] {
      try write("json", name, Array(text.utf8))
    }
    for (name, der) in zip(["leaf", "intermediate", "root"], Place.authority.x5c) {
      try write("certificate", name, der)
    }
    try write("certificate", "apple-root-ca-g3", AppleRoots.g3.der)
    try write("certificate", "apple-root-ca", AppleRoots.inc.der)
    let responder = OCSPResponder(issuer: Place.authority.intermediate, key: Place.authority.intermediateKey)
    for (name, status) in [
      ("good", RevocationAnswer.Status.good), ("revoked", .revoked(since: Place.signed.milliseconds)),
      ("unknown", .unknown),
    ] {
      try write(
        "ocsp", name,
        responder.answer(
          about: Place.authority.leaf, status, thisUpdate: Place.signed.milliseconds,
          nextUpdate: Place.now.milliseconds + 86_400_000))
    }
    try write("ocsp", "try-later", OCSPResponder.tryLater)
    try write(
      "ocsp", "question", OCSP.request(about: Place.authority.leaf, issuer: Place.authority.intermediate))
    try receipts(write)
    let purchased =
      #"{"type":"payment.purchased","environment":"Production","account":"a1","attemptId":"t1","transactionId":"2","#
      + #""productId":"p","signedTransaction":"\#(Place.sign(Array(transaction.utf8)))"}"#
    let failed =
      #"{"type":"payment.failed","environment":"Sandbox","account":"a1","attemptId":"t1","productId":"p","#
      + #""failure":{"domain":"SKErrorDomain","code":2,"userCancelled":true}}"#
    let notified = #"{"signedPayload":"\#(Place.sign(Array(notifications[0].utf8)))"}"#
    for (name, text) in [
      ("event", "POST /v1/events?wait=0 application/json\n" + purchased),
      ("lines", "POST /v1/events application/x-ndjson\n" + purchased + "\n\n" + failed + "\nx"),
      ("notification", "POST /v1/notifications application/json\n" + notified),
      ("permit", "GET /v1/permits/Production/a1/0123?wait=1 text/plain\n"),
      ("permit-by-transaction", "GET /v1/permits/Production/a1?transaction=2 text/plain\n"),
      ("account", "GET /v1/accounts/Production/a%2F1 text/plain\n"), ("health", "GET /livez text/plain\n"),
      ("metrics", "GET /metrics?x=%20+ text/plain\n"),
    ] {
      try write("http", name, Array(text.utf8))
    }
  }

  /// Apple's own example, and its content signed again in each form.
  static func receipts(_ write: (String, String, [UInt8]) throws -> Void) throws {
    let file = "Tests/CryptographyTests/Fixtures/receipts/xcode-app-receipt-with-transaction.b64"
    let text = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    guard let published = Base64.decode(text) else { fault("\(file) is not base64") }
    try write("receipt", "published", published)
    let content = try SignedData(parsing: published).content
    try write("receipt", "content", content)
    for (name, form) in [
      ("der", SignedData.Form()), ("ber", .init(isIndefinite: true)), ("attributes", .init(hasAttributes: true)),
    ] {
      try write(
        "receipt", name,
        SignedData.sign(
          content, certificates: [Place.receiptRoot], signer: Place.receiptRoot, key: Place.receiptKey, form: form))
    }
  }
}
