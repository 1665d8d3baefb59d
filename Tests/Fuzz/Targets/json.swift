import PurchasesJSON

/// What is read as JSON is written so that it reads the same again.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = Place.bytes(start, count)
  guard let document = try? JSONDocument(parsing: input) else { return 0 }
  _ = document.firstDuplicateMember()
  walk(document.root)
  let text = document.root.text
  let json = document.root.json
  do {
    let again = try JSONDocument(parsing: text)
    hold(again.root.text == text && again.root.json == json, "a document is not read as it was written")
    hold(try JSON(parsing: json.bytes) == json, "a value is not read as it was written")
    let canonical = json.canonicalBytes
    hold(try JSON(parsing: canonical).canonicalBytes == canonical, "the canonical form has another")
  } catch { fault("what was written can't be read") }
  return 0
}

private func walk(_ view: JSONView) {
  _ = (view.int64, view.milliseconds, view.string, view.bool, view.numberText)
  if let whole = view.int64 { hold(view.milliseconds == whole, "a whole number has another floor") }
  for element in view.elements { walk(element) }
  for member in view.members { walk(member.value) }
}
