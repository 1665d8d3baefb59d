import PurchasesContracts
import PurchasesCore

extension Verb {
  /// What Apple says of one purchase, for people.
  static func print(_ chain: ChainView) {
    let purchase = chain.purchase
    var facts = ["purchase \(chain.originalTransaction)  \(purchase.product)  \(purchase.type.apple)"]
    if let end = purchase.paidThrough { facts.append("paid through \(end)") }
    if purchase.quantity != 1 { facts.append("quantity \(purchase.quantity)") }
    if let seats = chain.seats { facts.append("seats \(seats)") }
    if let price = purchase.price, let currency = purchase.currency {
      facts.append("price \(price) milliunits \(currency)")
    }
    if purchase.offer?.isTrial == true {
      facts.append("trial")
    } else if let offer = purchase.offer {
      facts.append("offer \(offer.identifier ?? offer.discountType ?? "of type \(offer.type ?? 0)")")
    }
    if purchase.isUpgraded { facts.append("upgraded") }
    if let date = purchase.revokedAt {
      facts.append("revoked \(date)\(purchase.revocationType.map { " \($0)" } ?? "")")
    }
    if let renewal = chain.renewal {
      if let renews = renewal.autoRenews { facts.append(renews ? "auto-renew on" : "auto-renew off") }
      if renewal.isInBillingRetry { facts.append("in billing retry") }
      if let grace = renewal.graceUntil { facts.append("grace until \(grace)") }
    }
    Output.line("  \(facts.joined(separator: ", "))")
    for item in purchase.items {
      Output.line("    item \(item.sku)\(item.revokedAt.map { ", revoked \($0)" } ?? "")")
    }
    for change in chain.pending {
      let to = change.to.map { " to \($0)" } ?? ""
      Output.line("    pending \(change.kind.rawValue)\(to)\(change.at.map { " at \($0)" } ?? "")")
    }
  }
}
