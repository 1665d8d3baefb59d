import PurchasesCryptography

/// The oldest kind of receipt: one transaction as property-list text, with a signature beside it. Only `verifyReceipt` can
/// tell whether one is genuine; this store's signature is an ECDSA one of its own.
public struct LegacyReceipt: Sendable {
  /// Names and values of the transaction, such as `transaction-id`.
  public let fields: [(name: String, value: String)]
  public let isSandbox: Bool

  public init(fields: [(name: String, value: String)], isSandbox: Bool) {
    self.fields = fields
    self.isSandbox = isSandbox
  }

  public subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }

  /// The receipt as a client sends it: base64 of the text.
  public func encoded(_ authority: LocalAuthority) -> String {
    let info = Array(Self.text(fields).utf8)
    let signature = authority.authority.leafKey.sign(info)
    var outer: [(name: String, value: String)] = [
      ("signature", Base64.encode(signature)), ("purchase-info", Base64.encode(info)),
    ]
    if isSandbox { outer.append(("environment", "Sandbox")) }
    outer += [("pod", "100"), ("signing-status", "0")]
    return Base64.encode(Array(Self.text(outer).utf8))
  }

  /// Nil for what is no such receipt, or not signed by this store.
  init?(encoded: String, authority: LocalAuthority) {
    guard let bytes = Base64.decode(encoded), let text = String(validating: bytes, as: UTF8.self) else { return nil }
    let outer = Self.fields(text)
    func value(_ name: String) -> [UInt8]? { outer.first { $0.name == name }.flatMap { Base64.decode($0.value) } }
    guard let info = value("purchase-info"), let signature = value("signature"),
      authority.authority.leafKey.publicKey.verify(signature: signature, message: info)
    else { return nil }
    fields = Self.fields(String(decoding: info, as: UTF8.self))
    isSandbox = outer.contains { $0.name == "environment" && $0.value == "Sandbox" }
  }

  private static func text(_ fields: [(name: String, value: String)]) -> String {
    "{\n" + fields.map { "\t\"\($0.name)\" = \"\($0.value)\";\n" }.joined() + "}"
  }

  /// `"name" = "value";` line by line; no value of ours holds a quotation mark.
  private static func fields(_ text: String) -> [(name: String, value: String)] {
    text.split(separator: "\n").compactMap { line in
      let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
      return parts.count == 5 ? (String(parts[1]), String(parts[3])) : nil
    }
  }
}
