import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesTestKit
import Testing

/// Each cell of the lifecycle, held against ownership and entitlements as they run: a purchase is brought into the state,
/// Apple's notification comes, and what came of it is the cell's effect.
@Suite struct LifecycleTests {
  /// What the account has at an instant.
  private struct Holding: Equatable {
    /// The end of each entitlement; the distant future where there is none.
    var ends: [String: Instant] = [:]
    var coins: Int64 = 0
    /// What stands as active in the topic.
    var published: [String] = []
    var renewal: Renewal?

    init(_ world: World, _ scene: LifecycleScene, at instant: Int64) {
      guard let row = world.row(scene.account) else { return }
      let view = AccountView(
        row, permits: [], history: world.history, at: Instant(milliseconds: instant))
      for (entitlement, state) in view.entitlements { ends[entitlement.text] = state.endsAt ?? .distantFuture }
      coins = view.balances.first?.amount ?? 0
      published = row.state.published.map(\.entitlement.text).sorted()
      renewal = row.state.facts.renewal(of: scene.original)
      // Which statement it was is no part of what it says.
      renewal?.rank = RevisionRank(signedDate: .distantPast, isRevoked: false, source: .client, digest: "")
    }
  }

  private func world(_ scenes: [LifecycleScene]) -> World {
    let world = World(LifecycleScene.catalogue)
    let turns = scenes.map(\.past.count).max() ?? 0
    for turn in 0..<turns {
      for scene in scenes {
        let past = scene.past[turn]
        world.notify(past.transaction, "\(scene.account)-\(turn)", "SUBSCRIBED", renewal: past.renewal, at: past.at)
      }
    }
    world.tick(scenes[0].now)
    return world
  }

  @Test(arguments: Lifecycle.State.allCases)
  func statesAreWhatTheirFactsSay(_ state: Lifecycle.State) {
    let scene = LifecycleScene(state, number: 1)
    let world = world([scene])
    let holding = Holding(world, scene, at: scene.now)
    let facts = state.facts
    let holdsAccess = facts.isPaid && !facts.isRevoked && state != .credited || facts.isInGrace
    #expect(holding.ends.isEmpty != holdsAccess)
    #expect(holding.published == holding.ends.keys.sorted())
    #expect(holding.coins == (state == .credited ? 100 : 0))
    #expect(holding.renewal?.autoRenews == facts.renews)
    #expect((holding.renewal?.isInBillingRetry ?? false) == facts.isInRetry)
    #expect((holding.renewal?.graceEnds != nil) == facts.isInGrace)
    #expect((holding.renewal?.nextProduct.map { $0.text != scene.product } ?? false) == facts.changesProduct)
    let purchases = world.row(scene.account)?.state.facts.purchases ?? []
    #expect(purchases.isEmpty == (state == .unknown))
    #expect(purchases.contains { $0.isRevoked } == facts.isRevoked)
    #expect((purchases.count == 2) == facts.isReplaced)
  }

  @Test(arguments: Lifecycle.State.allCases, Lifecycle.types)
  func everyCellIsWhatTheFoldsDo(_ state: Lifecycle.State, _ type: Stated<NotificationType>) {
    let scenes = Lifecycle.subtypes.indices.map { LifecycleScene(state, number: 10 + $0) }
    let world = world(scenes)
    let now = scenes[0].now
    let before = scenes.map { Holding(world, $0, at: now) }
    var events: [[EntitlementEvent]] = []
    for (scene, subtype) in zip(scenes, Lifecycle.subtypes) {
      // Without proofs of its own a type says nothing, whatever it is.
      #expect(world.feed(bare(scene, type, subtype), key: "Production/\(scene.account)-bare", at: now).isEmpty)
      events.append(send(world, scene, type, subtype))
    }
    world.tick(now + 1)
    for (index, subtype) in Lifecycle.subtypes.enumerated() {
      let scene = scenes[index]
      let effect = Lifecycle.effect(state, type, subtype)
      let cell = Comment(rawValue: "\(state.rawValue), \(type.raw), \(subtype?.raw ?? "no subtype"): \(effect.text)")
      let after = Holding(world, scene, at: now + 1)
      check(effect.access, before[index], after, events[index], cell)
      check(effect.renewal, before[index], after, scene, cell)
      #expect(after.published == after.ends.keys.sorted(), cell)
      // Said again, it is nothing new.
      #expect(send(world, scene, type, subtype).isEmpty, cell)
      #expect(Holding(world, scene, at: now + 1) == after, cell)
    }
    // Shown to a person, and no more than that.
    let shown = ["none a notification of a grace period has no", "none a notification of rescinded consent names no"]
    #expect(world.quarantined.allSatisfy { reason in shown.contains { reason.hasPrefix($0) } }, "\(world.quarantined)")
  }

  private func send(
    _ world: World, _ scene: LifecycleScene, _ type: Stated<NotificationType>,
    _ subtype: Stated<NotificationSubtype>?
  ) -> [EntitlementEvent] {
    guard let proofs = scene.proofs(Lifecycle.statement(type, subtype)) else {
      return world.feed(bare(scene, type, subtype), key: "Production/\(scene.account)-bare", at: scene.now)
    }
    return world.notify(
      proofs.transaction, "\(scene.account)-next", type.raw, subtype: subtype?.raw, renewal: proofs.renewal,
      at: scene.now)
  }

  private func bare(
    _ scene: LifecycleScene, _ type: Stated<NotificationType>, _ subtype: Stated<NotificationSubtype>?
  ) -> VerifiedEvent {
    let signed = Instant(milliseconds: scene.now)
    return .verified(
      PurchaseVerified(
        environment: .production, kind: .notification, proof: SHA256.digest(scene.account).hex, signedDate: signed,
        parts: [],
        notification: NotificationFacts(
          uuid: "\(scene.account)-bare", type: type.raw, subtype: subtype?.raw, version: "2.0", signedDate: signed),
        report: Report(type: .storeNotified), evidence: .null))
  }

  // MARK: Effects

  private func check(
    _ access: Lifecycle.Effect.Access, _ before: Holding, _ after: Holding, _ events: [EntitlementEvent],
    _ cell: Comment
  ) {
    let (old, new) = (Set(before.ends.keys), Set(after.ends.keys))
    let steps = events.compactMap { event in
      if case .entitlement(let change) = event.content { change } else { nil }
    }
    let credits = after.coins - before.coins
    let isLonger = before.ends.contains { name, end in after.ends[name].map { $0 > end } ?? false }
    let isShorter = before.ends.contains { name, end in after.ends[name].map { $0 < end } ?? true }
    switch access {
    case .unchanged:
      #expect(events.isEmpty && before.ends == after.ends && credits == 0, cell)
    case .grants, .restores:
      #expect(new.isStrictSuperset(of: old) && !isShorter && credits == 0, cell)
      #expect(steps.contains { $0.step == .granted }, cell)
      #expect(steps.contains { $0.rule == .refundReversal } == (access == .restores), cell)
    case .extends:
      #expect(old.isSubset(of: new) && isLonger && !isShorter && credits == 0, cell)
      #expect(steps.contains { $0.step == .extended } && !steps.contains { $0.step == .revoked }, cell)
    case .replaces:
      #expect(!new.isSuperset(of: old) && !old.isSuperset(of: new) && !old.isDisjoint(with: new) && credits == 0, cell)
      #expect(steps.contains { $0.step == .granted }, cell)
    case .ends, .revokes:
      #expect(new.isStrictSubset(of: old) && !isLonger && credits == 0, cell)
      #expect(!steps.isEmpty && !steps.contains { $0.step == .granted || $0.step == .extended }, cell)
      if access == .revokes { #expect(steps.allSatisfy { $0.step == .revoked && $0.rule == .refund }, cell) }
    case .addsCredits, .returnsCredits, .takesCredits:
      #expect(before.ends == after.ends && steps.isEmpty && events.count == 1, cell)
      #expect(credits == (access == .takesCredits ? -100 : 100), cell)
    }
  }

  private func check(
    _ renewal: Lifecycle.Effect.Renewal, _ before: Holding, _ after: Holding, _ scene: LifecycleScene, _ cell: Comment
  ) {
    guard renewal != .unchanged else {
      #expect(before.renewal == after.renewal, cell)
      return
    }
    guard let known = after.renewal else {
      Issue.record("nothing is known of how it goes on: \(cell)")
      return
    }
    switch renewal {
    case .unchanged: break
    case .renews: #expect(known.autoRenews == true, cell)
    case .stops: #expect(known.autoRenews == false, cell)
    case .changes: #expect(known.nextProduct?.text == "bronze", cell)
    case .keepsProduct: #expect(known.nextProduct?.text == scene.product, cell)
    case .grace:
      #expect(known.isInBillingRetry && known.graceEnds.map { $0 > Instant(milliseconds: scene.now) } == true, cell)
    case .retries: #expect(known.isInBillingRetry && known.graceEnds == nil, cell)
    case .over: #expect(known.autoRenews == false && !known.isInBillingRetry && known.graceEnds == nil, cell)
    }
  }
}
