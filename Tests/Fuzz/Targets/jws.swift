import PurchasesContracts
import PurchasesCryptography
import PurchasesVerification

/// Bytes as a client sends them in place of a proof. What is verified has one spelling only.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = Place.bytes(start, count)
  for kind in [nil, ProofKind.notification] {
    guard case .verified(let proof) = Place.judge.judge(input, expecting: kind, at: Place.now) else { continue }
    hold(proof.digest == SHA256.digest(input).hex, "the digest is of something else")
    do {
      let jws = try CompactJWS.split(input)
      let again =
        Base64URL.encode(try jws.header) + "." + Base64URL.encode(jws.payload) + "." + Base64URL.encode(jws.signature)
      hold(Array(again.utf8) == input, "a verified proof has a second spelling")
    } catch { fault("a verified proof can't be split") }
  }
  return 0
}
