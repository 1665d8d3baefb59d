extension AccountState {
  /// Brings what is published to where the facts are, in order of entitlement.
  ///
  /// Only a tick lets a published entitlement expire: between ticks it stays active while it has an interval that ends
  /// after the last tick, whatever the time of the record in hand. So a partition that lags behind never takes away what
  /// a renewal that it has not read yet goes on with, and any order of arrival ends the same.
  mutating func publish(_ intervals: [AccessInterval], at now: Instant, _ rule: Rule) -> [AccountChange] {
    var changes: [AccountChange] = []
    var after: [PublishedEntitlement] = []
    after.reserveCapacity(published.count + 1)
    // Both lists are in order of entitlement: what is published and has no interval any more falls out in between.
    var left = published[...]
    let lastTick = clock
    let live = intervals.filter { !$0.isRevoked && $0.end > lastTick }
    func withdraw(_ gone: PublishedEntitlement) {
      let hasRunOut = gone.state.endsAt.map { $0 <= lastTick } ?? false
      guard hasRunOut || !endedByItself(gone, intervals, by: lastTick, rule) else {
        changes.append(.entitlement(gone.entitlement, .expired, before: gone.state, after: .inactive, rule))
        return
      }
      // Time takes nothing away before its end: then another catalogue does.
      let cause = hasRunOut ? .time : rule == .time ? .catalogue : rule
      changes.append(
        .entitlement(
          gone.entitlement, hasRunOut ? .expired : .revoked, before: gone.state, after: .inactive, cause))
    }
    Access.forEachEntitlement(live) { entitlement, intervals in
      while let first = left.first, first.entitlement < entitlement { withdraw(left.removeFirst()) }
      let before = left.first?.entitlement == entitlement ? left.removeFirst() : nil
      let state = Access.state(intervals) { $0.start <= now && (before != nil || now < $0.end) }
      switch (before, state) {
      case (nil, nil): break
      case (nil, let state?):
        changes.append(.entitlement(entitlement, .granted, before: .inactive, after: state, rule))
        after.append(PublishedEntitlement(entitlement: entitlement, state: state))
      case (let before?, nil): withdraw(before)
      case (let before?, let state?) where isTakenAway(before.state, leaving: state, at: now, rule): withdraw(before)
      case (let before?, let state?):
        after.append(PublishedEntitlement(entitlement: entitlement, state: state))
        guard before.state != state else { break }
        let isShorter = (state.endsAt ?? .distantFuture) < (before.state.endsAt ?? .distantFuture)
        changes.append(
          .entitlement(entitlement, isShorter ? .reduced : .extended, before: before.state, after: state, rule))
      }
    }
    for gone in left { withdraw(gone) }
    published = after
    return changes
  }

  /// Whether a refund, a transfer or an order took what was running, so that what is left of it has run out already. That is
  /// a revocation and not a shorter time, whether or not a tick has gone by since.
  private func isTakenAway(
    _ before: EntitlementState, leaving after: EntitlementState, at now: Instant, _ rule: Rule
  ) -> Bool {
    guard rule == .refund || rule == .transfer || rule == .order, let end = after.endsAt, end <= now else {
      return false
    }
    return now < before.endsAt ?? .distantFuture
  }

  /// Whether what stood as active for longer has, as it now turns out, run out by the last tick: grace that was taken back,
  /// or a period that the next one had ended. No revocation, though it ends before the end that was published: consumers
  /// count refunds by those.
  private func endedByItself(
    _ gone: PublishedEntitlement, _ intervals: [AccessInterval], by lastTick: Instant, _ rule: Rule
  ) -> Bool {
    guard rule == .renewal || rule == .purchase else { return false }
    let last = intervals.filter {
      $0.entitlement == gone.entitlement && $0.key?.originalTransaction == gone.state.originalTransaction
    }.max { $0.end == $1.end ? !$0.isRevoked && $1.isRevoked : $0.end < $1.end }
    return last.map { !$0.isRevoked && $0.end <= lastTick } ?? false
  }

  /// The next instant at which time alone changes what is published.
  func nextChange(_ intervals: [AccessInterval], after now: Instant) -> Instant? {
    var due = Instant.distantFuture
    for entry in published { due = min(due, entry.state.endsAt ?? .distantFuture) }
    // What is not active begins later; what is active has all that touches it in its end already.
    for interval in intervals where !interval.isRevoked && interval.start > now {
      if !published.contains(where: { $0.entitlement == interval.entitlement }) { due = min(due, interval.start) }
    }
    return due == .distantFuture ? nil : due
  }
}
