import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesVerification
import Testing

@testable import PurchasesLocalAppStore

struct ScenarioTests {
  static let day = Instant(milliseconds: 1_764_460_800_000)
  static let scenario = Scenario(seed: 42, accounts: 600, day: day)
  /// Signing takes its time in a debug build.
  static let signed = Scenario(seed: 42, accounts: 200, day: day)

  private func bodies(_ scenario: Scenario) -> [(slot: Instant, step: Step, body: [UInt8])] {
    scenario.slots.flatMap { slot in
      slot.lanes.flatMap { lane in
        lane.compactMap { step -> (Instant, Step, [UInt8])? in
          switch step.action {
          case .report(let report): (slot.at, step, report.body(scenario.authority))
          case .finish(let report, _): (slot.at, step, report.body(scenario.authority))
          case .notify(let notification): (slot.at, step, notification.body(scenario.authority))
          case .seeBalance: nil
          }
        }
      }
    }
  }

  @Test func theSameSeedTellsTheSameDay() {
    func digest(_ scenario: Scenario) -> Hash256 {
      SHA256.digest(bodies(scenario).flatMap { $0.body + Array($0.slot.rfc3339.utf8) })
    }
    let first = digest(Scenario(seed: 1, accounts: 40, day: Self.day))
    #expect(digest(Scenario(seed: 1, accounts: 40, day: Self.day)) == first)
    #expect(digest(Scenario(seed: 2, accounts: 40, day: Self.day)) != first)
  }

  @Test func anAccountsStoryDoesNotDependOnHowManyThereAre() {
    func story(_ index: Int) -> [Instant] {
      var teller = Storyteller(seed: 9, index: index, day: Self.day)
      teller.tell()
      return teller.steps.map(\.at)
    }
    #expect(story(3) == story(3) && story(3) != story(4))
  }

  /// Everything a door would refuse is a mistake of the scenario's.
  @Test func everyStepIsAnEventThatTheDoorsTake() throws {
    for (_, step, body) in bodies(Self.signed) {
      if case .notify = step.action {
        _ = try ReceivedRecord(type: .storeNotified, data: body)
      } else {
        _ = try ReceivedRecord(line: body, allowing: EventType.reported)
      }
    }
  }

  @Test func nothingIsToldBeforeItHappenedNorAfterTheDay() {
    for slot in Self.scenario.slots {
      #expect(slot.at <= Self.scenario.end)
      for lane in slot.lanes {
        #expect(!lane.isEmpty)
        for (earlier, later) in zip(lane, lane.dropFirst()) { #expect(earlier.at <= later.at) }
        for step in lane { #expect(step.at <= slot.at && step.at >= Self.day) }
      }
    }
  }

  @Test func allThatADayBringsIsInIt() {
    var types: Set<String> = []
    var notifications: Set<String> = []
    for slot in Self.scenario.slots {
      for step in slot.lanes.joined() {
        switch step.action {
        case .report(let report): types.insert(report.type.rawValue)
        case .finish(let report, _): types.insert(report.type.rawValue)
        case .notify(let notification):
          notifications.insert(
            [notification.notification.type, notification.notification.subtype].compactMap { $0 }.joined(separator: "/")
          )
        case .seeBalance: types.insert("see-balance")
        }
      }
    }
    let expected = EventType.reported.map(\.rawValue) + ["see-balance"]
    #expect(types.symmetricDifference(expected).isEmpty)
    for type in [
      "ONE_TIME_CHARGE", "SUBSCRIBED/INITIAL_BUY", "DID_RENEW", "DID_RENEW/BILLING_RECOVERY",
      "DID_FAIL_TO_RENEW/GRACE_PERIOD", "DID_FAIL_TO_RENEW", "GRACE_PERIOD_EXPIRED", "EXPIRED/VOLUNTARY",
      "EXPIRED/BILLING_RETRY", "DID_CHANGE_RENEWAL_STATUS/AUTO_RENEW_DISABLED", "DID_CHANGE_RENEWAL_PREF/UPGRADE",
      "DID_CHANGE_RENEWAL_PREF/DOWNGRADE", "REFUND", "REFUND_REVERSED", "REFUND_DECLINED", "CONSUMPTION_REQUEST",
      "TEST", "RENEWAL_EXTENSION/SUMMARY", "EXTERNAL_PURCHASE_TOKEN/UNREPORTED", "BRAND_NEW/NEVER_SEEN",
    ] { #expect(notifications.contains(type), "\(type)") }
  }

  private struct NoFacts: Facts {
    func answer(_ question: AppStoreQuestion) -> AppStoreAnswer? { nil }
    func row(_ key: RowKey) -> Row? { nil }
    func rows(_ need: Need) -> [Row] { [] }
  }

  /// The genuine is verified, the forged is rejected for the reason that its forger chose, nothing waits.
  @Test func theStageTellsGenuineFromForged() throws {
    let stage = VerificationStage(
      try VerificationSettings(
        apps: [.init(bundleID: DemoCatalogue.bundleID, appAppleID: DemoCatalogue.appAppleID)],
        anchors: TrustAnchors([("root", Self.signed.authority.root.der)])))
    var reasons: [String: Int] = [:]
    var verified = 0
    for (at, step, body) in bodies(Self.signed) {
      var isForged = false
      let received: ReceivedRecord
      switch step.action {
      case .notify(let notification):
        received = try ReceivedRecord(type: .storeNotified, data: body)
        isForged = notification.isForged
      case .report(let report):
        received = try ReceivedRecord(line: body)
        if let proof = report.proof {
          if case .transaction(let transaction, _) = proof {
            isForged = transaction.bundleID != DemoCatalogue.bundleID
          } else {
            isForged = true
          }
        }
      default: continue
      }
      let record = received.record(source: "/test", at: at)
      let incoming = Incoming(
        stored: StoredRecord(
          coordinates: Coordinates(topic: "purchases.received", partition: 0, offset: 0), record: record),
        topic: .received, envelope: .success(try Envelope(reading: record)))
      let actions = stage.decide(incoming, NoFacts(), Moment(now: at))
      guard actions.count == 1, case .emit(let outgoing) = actions[0] else {
        Issue.record("\(received.event.type) led to something else than one event")
        continue
      }
      switch try VerifiedEvent(type: outgoing.type, data: outgoing.data) {
      case .verified(let event):
        #expect(!isForged)
        // The key that the door chose without trusting the proof is the one that the proof, trusted, leads to.
        #expect(outgoing.key == received.key)
        #expect(event.proof == received.proofDigest)
        verified += 1
      case .rejected(let event):
        #expect(isForged, "\(event.reason): \(event.explanation)")
        reasons[event.reason, default: 0] += 1
      case .noted: #expect(received.event.proof == nil)
      case .pending: Issue.record("nothing of a scenario has to wait")
      }
    }
    #expect(verified > 800)
    #expect(Set(reasons.keys).count >= 3, "\(reasons)")
    #expect(reasons.values.reduce(0, +) >= 4)
  }

  @Test func theCatalogueIsOne() throws {
    let catalogue = try Catalogue(parsing: DemoCatalogue.json)
    for product in [
      DemoCatalogue.coins100, DemoCatalogue.coins550, DemoCatalogue.lifetime, DemoCatalogue.skins, DemoCatalogue.gold,
      DemoCatalogue.silver, DemoCatalogue.season,
    ] {
      let known = catalogue.product(try #require(ProductID(product.id)), as: ProductType(apple: product.type))
      #expect(known != nil, "\(product.id)")
      if case .consumable(_, let amount) = known?.terms { #expect(amount == product.coins) }
    }
    #expect(catalogue[try #require(ProductID(DemoCatalogue.unlisted.id))] == nil)
  }
}
