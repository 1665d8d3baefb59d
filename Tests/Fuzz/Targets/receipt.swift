import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesVerification

/// Bytes as a receipt's signed data, as its content, and as any value in BER.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = Place.bytes(start, count)
  do throws(BERFailure) {
    let value = try BERValue(parsing: input)
    walk(value)
    let definite = value.definite
    let again = try BERValue(parsing: definite)
    hold(again.definite == definite, "a value in definite lengths has another form")
  } catch {}
  if let content = try? AppReceipt(content: input) {
    _ = try? content.parts(digest: "d", environment: .production, signed: Place.signed, source: .client)
  }
  let verdict = Place.receiptJudge.judge(receipt: Array(Base64.encode(input).utf8), at: Place.now)
  // The key signs nothing that names an app of the deployment.
  if case .verified = verdict { fault("a receipt is verified that nobody signed") }
  return 0
}

private func walk(_ value: BERValue) {
  _ = (value.tag, value.octets, value.unsigned, value.text, value.encoding.count, value.content.count)
  for child in value.children { walk(child) }
}
