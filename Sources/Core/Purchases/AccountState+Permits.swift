extension AccountState {
  /// Answers those that waited and need not wait any longer.
  mutating func answerOpenPermits(
    _ intervals: [AccessInterval], at now: Instant, _ catalogue: Catalogue
  ) -> [AccountChange] {
    var changes: [AccountChange] = []
    var still: [OpenPermit] = []
    for open in openPermits {
      let permit = permit(open, wasHeld: false, intervals, at: now, catalogue)
      if permit.status == .pending { still.append(open) } else { changes.append(.permit(permit)) }
    }
    openPermits = still
    return changes
  }

  /// The answer to a proof that the account sent, once what it says is in the facts.
  func permit(
    _ open: OpenPermit, wasHeld: Bool, _ intervals: [AccessInterval], at now: Instant, _ catalogue: Catalogue
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
    guard let purchase = facts[open.key] else { return answer(.finishable, .none, Permit.Reason.anotherAccount) }
    if isWorthless(purchase) {
      return answer(.finishable, .none, Permit.Reason.revoked)
    }
    guard !isUnknown(purchase, catalogue) else {
      return answer(.pending, .none, Permit.Reason.unknownProduct)
    }
    if purchase.type == .consumable { return granted }
    var begins = false
    for interval in intervals where interval.key == open.key && !interval.isRevoked {
      if interval.start <= now && now < interval.end { return granted }
      guard interval.start > now else { continue }
      // Time that follows on what the account has already is granted as safely as that is.
      let held = published.first { $0.entitlement == interval.entitlement }
      if let held, interval.start <= held.state.endsAt ?? .distantFuture { return granted }
      begins = true
    }
    return begins
      ? answer(.pending, .none, Permit.Reason.notBegun) : answer(.finishable, .none, Permit.Reason.expired)
  }

  /// Revoked, and nothing of it left: a consumable may be refunded in part.
  func isWorthless(_ purchase: Purchase) -> Bool { purchase.isRevoked && (purchase.booking?.booked ?? 0) == 0 }
}
