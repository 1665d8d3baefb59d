extension AccountState {
  /// Answers those that waited and need not wait any longer.
  mutating func answerOpenPermits(
    _ purchases: ResolvedPurchases, _ intervals: [AccessInterval], at now: Instant, _ catalogue: Catalogue
  ) -> [AccountChange] {
    var changes: [AccountChange] = []
    var still: [OpenPermit] = []
    for open in openPermits {
      let permit = permit(open, wasHeld: false, purchases, intervals, at: now, catalogue)
      if permit.status == .pending { still.append(open) } else { changes.append(.permit(permit)) }
    }
    openPermits = still
    return changes
  }

  /// The answer to a proof that the account sent, once what it says is in the facts.
  func permit(
    _ open: OpenPermit, wasHeld: Bool, _ purchases: ResolvedPurchases, _ intervals: [AccessInterval], at now: Instant,
    _ catalogue: Catalogue
  ) -> Permit {
    func answer(_ status: Permit.Status, _ content: Permit.Content, _ reason: String) -> Permit {
      Permit(
        proof: open.proof, status: status, content: content, reason: reason, transaction: open.transaction,
        product: open.product)
    }
    let granted =
      wasHeld
      ? answer(.finishable, .alreadyGranted, Permit.Reason.alreadyGranted)
      : answer(.finishable, .granted, Permit.Reason.granted)
    // Whoever asks for what has gone to another account meanwhile is told so.
    let bought = purchases.places(of: open.key).map { purchases.purchases[$0] }
    guard !bought.isEmpty else { return answer(.finishable, .none, Permit.Reason.anotherAccount) }
    let left = bought.filter { !isWorthless($0) }
    guard !left.isEmpty else { return answer(.finishable, .none, Permit.Reason.revoked) }
    guard !left.contains(where: { catalogue.isUnknown($0) }) else {
      return answer(.pending, .none, Permit.Reason.unknownProduct)
    }
    if left.contains(where: { $0.type == .consumable }) { return granted }
    var begins = false
    var wasCut: Bool?
    for interval in intervals where left.contains(where: { $0.key == interval.key }) {
      guard !interval.isRevoked else {
        wasCut = (wasCut ?? true) && isCutByOrder(interval)
        continue
      }
      wasCut = false
      if interval.start <= now && now < interval.end { return granted }
      guard interval.start > now else { continue }
      // Time that follows on what the account has already is granted as safely as that is.
      let held = published.first { $0.entitlement == interval.entitlement }
      if let held, interval.start <= held.state.endsAt ?? .distantFuture { return granted }
      begins = true
    }
    if begins { return answer(.pending, .none, Permit.Reason.notBegun) }
    return answer(.finishable, .none, wasCut == true ? Permit.Reason.revoked : Permit.Reason.expired)
  }

  /// Whether an operator's order ended it: what had run out by then ended by itself.
  private func isCutByOrder(_ interval: AccessInterval) -> Bool {
    facts.orders.contains {
      !$0.isGrant && $0.entitlement == interval.entitlement && $0.at == interval.end
    }
  }

  /// Revoked, and nothing of it left: a consumable may be refunded in part.
  func isWorthless(_ purchase: Purchase) -> Bool {
    purchase.isRevoked && (purchase.booking.map { $0.booked == 0 } ?? purchase.isTakenBack)
  }
}
