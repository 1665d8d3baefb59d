import PurchasesCryptography

private let issuer = Place.authority.intermediate
private let (from, until) = (Place.signed.milliseconds, Place.now.milliseconds + 86_400_000)

/// Bytes in place of a responder's answer, and of a question to ours. Only what our responder signed counts; what stands around
/// it unsigned, such as further certificates, may be anything.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = Place.bytes(start, count)
  _ = OCSPResponder.serials(in: input)
  do {
    let answer = try RevocationAnswer(
      reading: input, about: Place.authority.leaf, issuer: issuer, at: Place.now.milliseconds)
    hold(answer.thisUpdate == from && answer.nextUpdate == until, "times count that nobody signed")
    hold([.good, .revoked(since: from), .unknown].contains(answer.status), "a status counts that nobody signed")
  } catch {}
  return 0
}
