import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import Testing

extension GoldenExamples {
  func entitlements() throws -> [String: EntitlementEvent] {
    var examples: [String: EntitlementEvent] = [:]
    func add(
      _ name: String, _ version: Int64, at time: String, _ cause: Cause, _ content: EntitlementEvent.Content
    ) throws {
      examples[name] = EntitlementEvent(
        environment: environment, account: ann, version: version, asOf: try instant(time), catalogueVersion: "2025-11",
        cause: cause, content: content)
    }
    func cause(_ event: String, proof: String? = nil, transaction: String? = nil) throws -> Cause {
      Cause(
        event: SHA256.digest(event).hex, proof: proof.map { SHA256.digest($0).hex },
        transaction: try transaction.map { try id($0) })
    }
    func on(until end: String) throws -> EntitlementState {
      EntitlementState(
        isActive: true, endsAt: try instant(end), product: try id("com.example.gold.monthly"),
        originalTransaction: try id("2000000912345601"))
    }
    func step(
      _ step: AccountChange.Step, _ rule: Rule, _ before: EntitlementState, _ after: EntitlementState
    ) throws -> EntitlementEvent.Content {
      .entitlement(
        EntitlementChanged(entitlement: try id("gold"), step: step, before: before, after: after, rule: rule))
    }
    let (november, december) = ("2025-11-28T00:00:00Z", "2025-12-28T00:00:00Z")
    try add(
      "entitlement.granted.v1", 1, at: "2025-10-29T00:00:03.120Z",
      cause("owned-1", proof: "first period", transaction: "2000000912345601"),
      step(.granted, .purchase, .inactive, on(until: november)))
    try add(
      "entitlement.extended.v1", 2, at: "2025-11-28T00:00:07.901Z",
      cause("owned-2", proof: renewal.jws, transaction: "2000000912345702"),
      step(.extended, .purchase, on(until: november), on(until: december)))
    try add(
      "entitlement.reduced.v1", 3, at: "2025-12-01T09:12:44Z", cause("owned-3", proof: "grace ended"),
      step(.reduced, .renewal, on(until: "2026-01-13T00:00:00Z"), on(until: december)))
    try add(
      "entitlement.revoked.v1", 4, at: "2025-12-03T17:20:00.417Z",
      cause("owned-4", proof: "refund", transaction: "2000000912345702"),
      step(.revoked, .refund, on(until: december), .inactive))
    try add(
      "entitlement.expired.v1", 3, at: december, cause("owned-tick"),
      step(.expired, .time, on(until: december), .inactive))
    let bought = try cause("owned-5", proof: coins.jws, transaction: "2000000912345671")
    try add(
      "credit.added.v1", 5, at: "2025-11-30T02:29:45.302Z", bought,
      .credit(
        CreditChanged(
          unit: id("coins"), amount: 300, isAddition: true, balanceBefore: 20, balanceAfter: 320,
          entry: "2000000912345671/5", transaction: id("2000000912345671"), product: id("com.example.coins.100"),
          rule: .purchase)))
    try add(
      "credit.removed.v1", 7, at: "2025-11-30T02:40:12.004Z", cause("owned-6"),
      .credit(
        CreditChanged(
          unit: id("coins"), amount: 80, isAddition: false, balanceBefore: 320, balanceAfter: 240,
          entry: "spend:game-9-turn-14", transaction: nil, product: nil, rule: .spend)))
    try add(
      "payment.finishable.v1", 6, at: "2025-11-30T02:29:45.302Z", bought,
      .finishable(
        PaymentFinishable(
          proof: coins.digest, content: .granted, reason: Permit.Reason.granted, transaction: id("2000000912345671"),
          product: id("com.example.coins.100"), attempt: nil)))
    try add(
      "payment.finishable.v1.failed", 8, at: "2025-11-30T02:31:07.480Z",
      Cause(event: SHA256.digest("owned-7").hex, proof: "attempt:pay-7733"),
      .finishable(
        PaymentFinishable(
          proof: "attempt:pay-7733", content: .none, reason: Permit.Reason.paymentFailed, transaction: nil,
          product: id("com.example.gold.monthly"), attempt: "pay-7733")))
    return examples
  }

  func audit() throws -> [String: AuditEvent] {
    let origin = "example.com/purchases"
    func note(_ origin: String, _ size: Int, _ root: Hash256, _ signature: String) -> String {
      "\(origin)\n\(size)\n\(Base64.encode(root.bytes))\n\n— \(origin) \(signature)\n"
    }
    let (tree, summary) = (SHA256.digest("root of received/0"), SHA256.digest("root of the summary"))
    let signatures = (
      "Gis8TTctlvZ787GiLJoDZabPOlhZoTmqV2k3R1ExhBu5vQmS6U5BXMiLr3aFriL1Cct1jIivTELW+PMRlS8oQ1SK25A=",
      "Gis8TfZgQAZuFU7WB5HElueTN/8dFPswDDuwsjtOqkI+XyX2i6Ucl/iVDs73wC2U+RG8x4+Ivs4z0coxZzqsptcfdHs="
    )
    let head = "\(origin)/purchases.received/0\n4711\n\(Base64.encode(tree.bytes))\n"
    return [
      "audit.checkpointed.v1": .checkpointed(
        AuditCheckpointed(
          scope: .partition(TopicPartition("purchases.received", 0)), size: 4711, root: tree.hex,
          note: note("\(origin)/purchases.received/0", 4711, tree, signatures.0))),
      "audit.checkpointed.v1.summary": .checkpointed(
        AuditCheckpointed(
          scope: .summary(added: [head]), size: 24, root: summary.hex,
          note: note("\(origin)/summary/1764469785302", 24, summary, signatures.1))),
      "audit.anomaly.found.v1": .anomaly(
        AuditAnomaly(
          kind: .grantedNeverFinished, subject: TransactionSubject(environment, try id("2000000912345671")),
          since: try instant("2025-11-30T02:29:45.302Z"), ageMilliseconds: 86_400_000,
          explanation: "a permit to finish was given and the client never said that it had finished")),
      "audit.anomaly.found.v1.unreadable": .anomaly(
        AuditAnomaly(
          kind: .unreadableInInternalTopic,
          coordinates: Coordinates(topic: "purchases.owned", partition: 2, offset: 118),
          since: try instant("2025-11-30T02:41:00Z"), ageMilliseconds: 412,
          explanation: "stage entitlements could not read a record that only stages of this pipeline may write")),
    ]
  }
}
