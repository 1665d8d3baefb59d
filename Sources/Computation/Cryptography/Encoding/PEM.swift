/// The text armour around DER (RFC 7468).
public enum PEM {
  private static let lineLength = 64

  public static func encode(_ der: [UInt8], label: String) -> String {
    var text = "-----BEGIN \(label)-----\n"
    var rest = Base64.encode(der)[...]
    while !rest.isEmpty {
      text += rest.prefix(lineLength) + "\n"
      rest = rest.dropFirst(lineLength)
    }
    return text + "-----END \(label)-----\n"
  }

  /// The content of the first block with one of the labels; nil if there is none or it isn't base64.
  public static func decode(_ text: String, labels: [String]) -> [UInt8]? {
    var label: String?
    var body: [UInt8] = []
    for line in text.utf8.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
      let line = String(decoding: line, as: UTF8.self)
      if let current = label {
        if line == "-----END \(current)-----" { return Base64.decode(body) }
        body += line.utf8.filter { $0 != 0x20 && $0 != 0x09 }
      } else {
        label = labels.first { line == "-----BEGIN \($0)-----" }
      }
    }
    return nil
  }
}
