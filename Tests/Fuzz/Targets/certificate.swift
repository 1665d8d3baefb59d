import PurchasesCryptography

/// Bytes in the place of each certificate of a chain. Only our own chain may come out as trusted.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = Place.bytes(start, count)
  do {
    let certificate = try Certificate(der: input)
    hold(certificate.der == input, "a certificate is not what was read")
    _ = OCSP.responders(of: certificate)
    _ = certificate.isSigned(by: Place.authority.root)
  } catch {}
  let good = Place.authority.x5c
  for place in 0..<good.count {
    var chain = good
    chain[place] = input
    let judged = ChainPolicy.judge(x5c: chain, anchors: Place.authority.anchors, at: Place.signed.milliseconds)
    guard case .success = judged, place < 2 else { continue }
    // The third one is only looked up among the anchors: any certificate of the root's name and key means it.
    hold(input == good[place], "a foreign certificate is trusted")
  }
  return 0
}
