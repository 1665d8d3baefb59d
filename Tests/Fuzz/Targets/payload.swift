import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesVerification

/// Payloads that the store really signed, whatever is in them. The first byte says which kind is expected.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = Place.bytes(start, count)
  guard let first = input.first else { return 0 }
  let kinds: [ProofKind?] = [nil] + ProofKind.allCases
  let payload = Array(input.dropFirst())
  let verdict = Place.judge.judge(
    Place.sign(payload), expecting: kinds[Int(first) % kinds.count], source: .notification, at: Place.now)
  guard case .verified(let proof) = verdict else { return 0 }
  if proof.kind != .notification {
    hold(proof.parts.map(\.payload) == [payload], "a payload is not kept as it was signed")
  }
  for part in proof.parts {
    do {
      _ = try part.findings()
      if part.kind == .transaction { _ = try part.transactionRevision() }
    } catch { fault("a verified part can't be read") }
  }
  let event = VerifiedEvent.verified(
    PurchaseVerified(
      environment: proof.environment, kind: proof.kind, proof: proof.digest, signedDate: proof.signedDate,
      parts: proof.parts, notification: proof.notification, body: proof.body, report: Report(type: .storeNotified),
      evidence: proof.evidence))
  do {
    // White space between the members of a payload goes when an event is read and written again; nothing else does.
    let again = try VerifiedEvent(type: .purchaseVerified, data: event.data)
    let once = again.data
    hold(try VerifiedEvent(type: .purchaseVerified, data: once).data == once, "an event changes with each reading")
    hold(try JSON(parsing: once) == JSON(parsing: event.data), "an event is not read as it was written")
  } catch { fault("a verified event can't be read: \(error)") }
  return 0
}
