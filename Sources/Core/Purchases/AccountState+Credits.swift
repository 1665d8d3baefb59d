extension AccountState {
  /// Posts the difference between what each consumable is worth now and what the ledger holds of it.
  mutating func bookCredits(
    _ purchases: inout ResolvedPurchases, _ catalogue: Catalogue, _ rule: Rule
  ) -> [AccountChange] {
    var changes: [AccountChange] = []
    for (index, purchase) in purchases.purchases.enumerated()
    where purchase.type == .consumable || purchase.booking != nil {
      var booking: Booking
      if let credits = catalogue.credits(purchase.product, boughtAt: purchase.begins) {
        booking = Booking(unit: credits.unit, worth: credits.amount * purchase.quantity, booked: 0)
        if let known = purchase.booking, known.booked != 0 {
          if known.unit == booking.unit {
            booking.booked = known.booked
          } else {
            changes.append(.credit(post(-known.booked, known.unit, .store, purchase: purchase, rule: rule)))
          }
        }
      } else if let known = purchase.booking {
        booking = known
      } else {
        continue
      }
      let due: Int64
      if purchase.type != .consumable {
        // Booked by the catalogue's word, until Apple told another type.
        due = 0
      } else if purchase.isRevoked {
        due = booking.worth - Booking.refund(of: booking.worth, percentage: purchase.revocationPercentage)
      } else {
        due = booking.worth
      }
      guard due != booking.booked || purchase.booking != booking else { continue }
      let difference = due - booking.booked
      booking.booked = due
      let origin = purchases.origin(of: index)
      facts.book(booking, of: origin.keys, sku: origin.sku)
      purchases.purchases[index].booking = booking
      if difference != 0 {
        changes.append(.credit(post(difference, booking.unit, .store, purchase: purchase, rule: rule)))
      }
    }
    return changes
  }

  /// One line of the ledger.
  mutating func post(
    _ amount: Int64, _ unit: CreditUnit, _ counterpart: CreditChange.Counterpart, purchase: Purchase?,
    request: String? = nil, rule: Rule
  ) -> CreditChange {
    let index = balances.firstIndex { !($0.unit < unit) } ?? balances.count
    if index == balances.count || balances[index].unit != unit {
      balances.insert(Balance(unit: unit, amount: 0), at: index)
    }
    let before = balances[index].amount
    // Out of reach for sums of single purchases; if it ever came to it, the balance stands still rather than turn its sign.
    let (sum, overflow) = before.addingReportingOverflow(amount)
    let after = overflow ? (amount > 0 ? .max : .min) : sum
    balances[index].amount = after
    return CreditChange(
      unit: unit, amount: amount, before: before, after: after, counterpart: counterpart,
      transaction: purchase?.transaction, product: purchase?.product, request: request, rule: rule)
  }
}
