import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import Testing

@testable import PurchasesVerification

/// What becomes of a proof when responders answer, don't, or say something else (case C03).
struct RevocationTests {
  let store = TestStore.shared

  private struct Answers: Facts {
    var answers: [AppStoreQuestion: AppStoreAnswer] = [:]
    func row(_ key: RowKey) -> Row? { nil }
    func rows(_ need: Need) -> [Row] { [] }
    func answer(_ question: AppStoreQuestion) -> AppStoreAnswer? { answers[question] }
  }

  private func stage(_ policy: RevocationPolicy) throws -> VerificationStage {
    let settings = try store.judge().settings
    return VerificationStage(
      try VerificationSettings(
        apps: settings.apps, anchors: settings.anchors, environments: settings.environments, revocation: policy))
  }

  private func incoming(_ proof: String) -> Incoming {
    let envelope = Envelope(id: "1", source: "/test", type: .paymentPurchased)
    let record = Record(
      key: Array("any".utf8),
      value: Array(#"{"account":"a1","transactionId":"2000000900000002","signedTransaction":"\#(proof)"}"#.utf8),
      headers: envelope.headers, timestamp: TestStore.now)
    return Incoming(
      stored: StoredRecord(
        coordinates: Coordinates(topic: "purchases.received", partition: 0, offset: 0), record: record),
      topic: .received, envelope: .success(envelope))
  }

  private var ofLeaf: AppStoreQuestion { .revocation(of: store.leaf.der, issuer: store.intermediate.der) }
  private var ofIntermediate: AppStoreQuestion { .revocation(of: store.intermediate.der, issuer: store.root.der) }

  /// Both good, but for what is said otherwise of the leaf.
  private func answers(
    ofLeaf status: RevocationAnswer.Status = .good, now: Instant = TestStore.now
  ) -> [AppStoreQuestion: AppStoreAnswer] {
    let (from, until) = (now.milliseconds - 60_000, now.milliseconds + 3_600_000)
    func given(_ body: [UInt8]) -> AppStoreAnswer { .given(AppStoreResponse(body: body, at: now)) }
    return [
      ofLeaf: given(
        OCSPResponder(issuer: store.intermediate, key: store.intermediateKey)
          .answer(about: store.leaf, status, thisUpdate: from, nextUpdate: until)),
      ofIntermediate: given(
        OCSPResponder(issuer: store.root, key: store.rootKey)
          .answer(about: store.intermediate, .good, thisUpdate: from, nextUpdate: until)),
    ]
  }

  private func decide(
    _ policy: RevocationPolicy, _ answers: [AppStoreQuestion: AppStoreAnswer], now: Instant = TestStore.now
  ) throws -> [Action] {
    try stage(policy).decide(incoming(store.sign(TestStore.transaction())), Answers(answers: answers), Moment(now: now))
  }

  private func event(_ actions: [Action]) throws -> VerifiedEvent {
    for case .emit(let outgoing) in actions { return try VerifiedEvent(type: outgoing.type, data: outgoing.data) }
    throw Unexpected()
  }

  struct Unexpected: Error {}

  private func evidence(_ actions: [Action]) throws -> JSON {
    switch try event(actions) {
    case .verified(let proof): proof.evidence
    case .rejected(let proof): proof.evidence
    case .pending, .noted: throw Unexpected()
    }
  }

  private func isParked(_ actions: [Action]) -> Bool { actions.contains { if case .park = $0 { true } else { false } } }

  @Test func bothCertificatesAreAskedAboutOnceEach() throws {
    let record = incoming(store.sign(TestStore.transaction()))
    let moment = Moment(now: TestStore.now)
    #expect(try stage(.hard).questions(record, moment) == [ofLeaf, ofIntermediate])
    #expect(try stage(.soft).questions(record, moment) == [ofLeaf, ofIntermediate])
    #expect(try stage(.off).questions(record, moment) == [])
  }

  /// Responders forget certificates that have run out; clients resend proofs of years ago.
  @Test func whoHasRunOutIsNotAskedAbout() throws {
    let later = Instant.at("2030-01-01T00:00:00Z")
    let record = incoming(store.sign(TestStore.transaction()))
    #expect(try stage(.hard).questions(record, Moment(now: later)) == [ofIntermediate], "it is valid until 2036")
    let muchLater = Instant.at("2037-01-01T00:00:00Z")
    #expect(try stage(.hard).questions(record, Moment(now: muchLater)) == [])
    let actions = try decide(.hard, [:], now: muchLater)
    #expect(try evidence(actions).object?["revocation"]?.object?["answer"] == .string("not-asked"))
    guard case .verified = try event(actions) else { throw Unexpected() }
  }

  @Test(arguments: [RevocationPolicy.soft, .hard])
  func goodAnswersStandInTheEvidence(policy: RevocationPolicy) throws {
    let actions = try decide(policy, answers())
    guard case .verified = try event(actions) else { throw Unexpected() }
    let told = try #require(try evidence(actions).object?["revocation"]?.array)
    #expect(told.map { $0.object?["answer"] } == [.string("good"), .string("good")])
    #expect(told[0].object?["certificate"] == .string(store.leaf.fingerprint.hex))
    #expect(told[0].object?["nextUpdate"] == .integer(TestStore.now.milliseconds + 3_600_000))
  }

  @Test(arguments: [RevocationPolicy.soft, .hard])
  func aRevokedCertificateIsTheEndOfIt(policy: RevocationPolicy) throws {
    let actions = try decide(policy, answers(ofLeaf: .revoked(since: TestStore.now.milliseconds - 86_400_000)))
    guard case .rejected(let rejected) = try event(actions) else { throw Unexpected() }
    #expect(rejected.reason == "chain-revoked")
    #expect(!isParked(actions))
  }

  /// An outage, a page for people, an answer about another certificate, one that has run out: none says anything.
  @Test(arguments: ["outage", "page", "other", "old", "later", "unknown", "nobody"])
  func whatCannotBeToldWaitsOrIsNoted(kind: String) throws {
    var answers = answers()
    let now = TestStore.now
    let responder = OCSPResponder(issuer: store.intermediate, key: store.intermediateKey)
    func given(_ body: [UInt8]) -> AppStoreAnswer { .given(AppStoreResponse(body: body, at: now)) }
    switch kind {
    case "outage": answers[ofLeaf] = .unavailable("no answer")
    case "page": answers[ofLeaf] = given(Array("<html>".utf8))
    case "other": answers[ofLeaf] = answers[ofIntermediate]
    case "old":
      answers[ofLeaf] = given(
        responder.answer(
          about: store.leaf, .good, thisUpdate: now.milliseconds - 20_000, nextUpdate: now.milliseconds - 10_000))
    case "later": answers[ofLeaf] = given(OCSPResponder.tryLater)
    case "unknown": answers = self.answers(ofLeaf: .unknown)
    default: answers = [:]
    }
    let hard = try decide(.hard, answers)
    #expect(isParked(hard), "nothing is granted and nothing is refused")
    guard case .pending(let pending) = try event(hard) else { throw Unexpected() }
    #expect(pending.reason == "revocation-unknown")
    let soft = try decide(.soft, answers)
    guard case .verified = try event(soft) else { throw Unexpected() }
    #expect(!isParked(soft))
    let told = try #require(try evidence(soft).object?["revocation"]?.array)
    #expect(told[0].object?["answer"] != .string("good"))
  }

  /// Nobody is asked about a chain that leads nowhere: its certificates name whatever address their maker likes.
  @Test func aForgedChainAsksNobody() throws {
    let forger = SigningAuthority(
      seed: Array("somebody else".utf8), name: "Test", notBefore: TestStore.leafFrom.milliseconds,
      notAfter: TestStore.leafThrough.milliseconds)
    let record = incoming(store.sign(TestStore.transaction(), chain: forger.x5c, key: forger.leafKey))
    #expect(try stage(.hard).questions(record, Moment(now: TestStore.now)) == [])
  }

  @Test func theProofsInsideANotificationAreAskedAbout() throws {
    let judge = try stage(.hard).judge
    let inner = store.sign(TestStore.transaction())
    let other = TestStore.leafBuilder()
    let key = P256PrivateKey(seed: store.seed, label: "another leaf")
    let leaf = other.signed(publicKey: key.key, issuer: store.intermediate, issuerKey: store.intermediateKey)
    let outer = store.sign(
      ["notificationType": .string("TEST"), "data": .object(["signedTransactionInfo": .string(inner)])],
      chain: [leaf.der, store.intermediate.der, store.root.der], key: key)
    let questions = judge.revocationQuestions(Array(outer.utf8), isNotification: true, now: TestStore.now)
    #expect(Set(questions) == [.revocation(of: leaf.der, issuer: store.intermediate.der), ofLeaf, ofIntermediate])
  }
}
