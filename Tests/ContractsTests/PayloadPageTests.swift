import Foundation
import PurchasesContracts
import PurchasesCore
import Testing

/// `docs/payloads.md` lists what the models know: no member, no value more or less.
struct PayloadPageTests {
  /// Rows of the page's tables by the heading above them, cells trimmed, without the head of the table.
  let tables: [String: [[String]]]
  let text: String

  init() throws {
    let file = SchemaFolder.root.deletingLastPathComponent().appendingPathComponent("docs/payloads.md")
    text = try String(contentsOf: file, encoding: .utf8)
    var tables: [String: [[String]]] = [:]
    var heading = ""
    for line in text.split(separator: "\n") {
      if line.hasPrefix("## ") { heading = String(line.dropFirst(3)) }
      if line.hasPrefix("Model `") { heading = "model " + (line.split(separator: "`").dropFirst().first ?? "") }
      guard line.hasPrefix("| "), !line.hasPrefix("| ---") else { continue }
      let cells = line.dropFirst().dropLast().split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      tables[heading, default: []].append(cells)
    }
    self.tables = tables.mapValues { Array($0.dropFirst()) }
  }

  func bare(_ cell: String) -> String { cell.replacingOccurrences(of: "`", with: "") }

  static let models: [(name: String, members: [PayloadMember])] = [
    ("SignedTransaction", SignedTransaction.members), ("TransactionCommitment", TransactionCommitment.members),
    ("TransactionMultiSeat", TransactionMultiSeat.members), ("MultiSeatPriceTier", MultiSeatPriceTier.members),
    ("AdvancedCommerceTransaction", AdvancedCommerceTransaction.members),
    ("AdvancedCommerceTransactionItem", AdvancedCommerceTransactionItem.members),
    ("AdvancedCommerceRefund", AdvancedCommerceRefund.members), ("SignedRenewalInfo", SignedRenewalInfo.members),
    ("RenewalCommitment", RenewalCommitment.members), ("RenewalMultiSeat", RenewalMultiSeat.members),
    ("AdvancedCommerceRenewal", AdvancedCommerceRenewal.members),
    ("AdvancedCommerceRenewalItem", AdvancedCommerceRenewalItem.members),
    ("AdvancedCommercePriceIncrease", AdvancedCommercePriceIncrease.members),
    ("AdvancedCommerceOffer", AdvancedCommerceOffer.members),
    ("AdvancedCommerceDescriptors", AdvancedCommerceDescriptors.members),
    ("SignedAppTransaction", SignedAppTransaction.members), ("SignedNotification", SignedNotification.members),
    ("NotificationData", NotificationData.members), ("NotificationSummary", NotificationSummary.members),
    ("NotificationAppData", NotificationAppData.members), ("ExternalPurchaseToken", ExternalPurchaseToken.members),
  ]

  @Test func everyMemberOfEveryModelStandsOnThePage() throws {
    #expect(
      Set(tables.keys.filter { $0.hasPrefix("model ") }) == Set(Self.models.map { "model " + $0.name }),
      "a model without a table, or a table without a model")
    for model in Self.models {
      let rows = try #require(tables["model " + model.name])
      #expect(rows.map { [bare($0[0]), $0[1]] } == model.members.map { [$0.name, $0.kind.rawValue] }, "\(model.name)")
      for row in rows { #expect(row.count == 4 && !row[2].isEmpty && !row[3].isEmpty, "\(model.name): \(row)") }
    }
    #expect(tables["Kinds of members"]?.map { $0[0] } == PayloadMember.Kind.allCases.map(\.rawValue))
  }

  @Test func everyNotificationTypeStandsOnThePage() {
    #expect(tables["Notification types"]?.map { bare($0[0]) } == NotificationType.allCases.map(\.rawValue))
    #expect(tables["Subtypes"]?.map { bare($0[0]) } == NotificationSubtype.allCases.map(\.rawValue))
    let types = Set(NotificationType.allCases.map(\.rawValue))
    for row in tables["Subtypes"] ?? [] where row[1] != "as Apple sends it" {
      #expect(types.isSuperset(of: bare(row[1]).components(separatedBy: ", ")), "\(row)")
    }
  }

  @Test func everyListedValueStandsOnThePage() throws {
    func texts<List: CaseIterable & RawRepresentable>(_: List.Type) -> [String] {
      List.allCases.map { "\($0.rawValue)" }
    }
    let lists: [(String, [String])] = [
      ("Environment", texts(Environment.self)),
      (
        "ProductType",
        [ProductType.consumable, .nonConsumable, .autoRenewable, .nonRenewing].map(\.apple)
      ),
      ("OwnershipType", texts(OwnershipType.self)), ("RevocationType", texts(RevocationType.self)),
      ("RevocationReason", texts(RevocationReason.self)), ("TransactionReason", texts(TransactionReason.self)),
      ("AdditionalTransactionReason", texts(AdditionalTransactionReason.self)), ("OfferType", texts(OfferType.self)),
      ("OfferDiscountType", texts(OfferDiscountType.self)), ("BillingPlanType", texts(BillingPlanType.self)),
      ("InvitationManagement", texts(InvitationManagement.self)), ("AutoRenewStatus", texts(AutoRenewStatus.self)),
      ("ExpirationIntent", texts(ExpirationIntent.self)), ("PriceIncreaseStatus", texts(PriceIncreaseStatus.self)),
      ("SubscriptionStatus", texts(SubscriptionStatus.self)),
      ("ConsumptionRequestReason", texts(ConsumptionRequestReason.self)),
      ("PurchasePlatform", texts(PurchasePlatform.self)), ("TokenType", texts(TokenType.self)),
      ("AdvancedCommerceRefundType", texts(AdvancedCommerceRefundType.self)),
      ("AdvancedCommerceRefundReason", texts(AdvancedCommerceRefundReason.self)),
      ("AdvancedCommercePriceIncreaseStatus", texts(AdvancedCommercePriceIncreaseStatus.self)),
      ("AdvancedCommerceOfferReason", texts(AdvancedCommerceOfferReason.self)),
    ]
    let rows = try #require(tables["Listed values"])
    #expect(rows.map { bare($0[0]) } == lists.map(\.0))
    for (row, list) in zip(rows, lists) {
      let quoted = row[2].split(separator: "`", omittingEmptySubsequences: false).enumerated()
        .filter { $0.offset % 2 == 1 }.map { String($0.element) }
      #expect(quoted == list.1, "\(list.0)")
    }
  }
}
