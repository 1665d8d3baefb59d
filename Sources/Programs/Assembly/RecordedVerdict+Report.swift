import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesVerification

extension RecordedVerdict {
  /// What people are told that differs.
  private struct Difference {
    let field: String
    let recorded: String
    let judged: String
  }

  /// Judges the proof again. Agrees: the same proof, the same verdict, and the same of everything that the event says of it.
  ///
  /// - Parameter device: whose the receipt must be; nil takes what the evidence says.
  public func judge(
    _ proof: [UInt8], _ values: SettingValues, device: String? = nil
  ) throws(UsageError) -> (agrees: Bool, json: [UInt8]) {
    let judged = try judged(proof, values, device: device)
    var differences = evidenceDifferences(judged)
    if code != judged.code {
      differences.append(Difference(field: "verdict", recorded: code, judged: judged.code))
    } else {
      differences += eventDifferences(judged)
    }
    var writer = JSONWriter()
    writer.object { json in
      json.field("agrees", differences.isEmpty)
      json.field("recorded", code)
      json.field("judged", judged.code)
      json.field("restsOn", judged.restsOn)
      json.field("verifier", isOfOlderRules(judged) ? judged.evidence["verifier"]?.string : nil)
      json.field(
        "differences",
        array: { json in
          for difference in differences {
            json.object { json in
              json.field("field", difference.field)
              json.field("recorded", difference.recorded)
              json.field("judged", difference.judged)
            }
          }
        })
    }
    return (differences.isEmpty, writer.bytes + [0x0a])
  }

  /// What stands in the evidence beside what judging again comes to.
  private static let beside: Set<String> = ["verifier", "proofText", "proofNotCarried", "stated", "accepted"]

  private func evidenceDifferences(_ judged: Judged) -> [Difference] {
    var differences: [Difference] = []
    func hold(_ name: String, _ recorded: JSON?, _ judged: JSON?) {
      if let found = Self.difference("evidence.\(name)", recorded, judged) { differences.append(found) }
    }
    // Older rules are judged by ours: what they come to is told by the verdict.
    if !isOfOlderRules(judged) { hold("verifier", evidence["verifier"]?.json, judged.evidence["verifier"]) }
    let own = evidence.json
    var again = judged.evidence
    // Whoever names the device again has a hash where an older evidence has none.
    if own["receipt"]?["deviceHash"] == nil, var members = again.object, var receipt = members["receipt"]?.object {
      receipt["deviceHash"] = nil
      members["receipt"] = .object(receipt)
      again = .object(members)
    }
    var names = own.object?.members.map(\.name) ?? []
    for member in again.object?.members ?? [] where !names.contains(member.name) { names.append(member.name) }
    for name in names where !Self.beside.contains(name) { hold(name, own[name], again[name]) }
    // A record that did not wait was judged as of its own time, which is its verdict's too.
    if let origin, origin.topic.hasSuffix(Topic.received.rawValue),
      let at = line?["timestamp"]?.string.flatMap({ Instant(rfc3339: $0) })
    {
      hold("judgedAt", evidence["judgedAt"]?.json, .integer(at.milliseconds))
    }
    return differences
  }

  private static let members = [
    "environment", "kind", "proof", "signedDate", "notification", "body", "parts", "reason",
  ]

  private func eventDifferences(_ judged: Judged) -> [Difference] {
    guard let data = judged.event?.data, let again = try? JSON(parsing: data) else { return [] }
    let own = event.json
    // What `purchases verify` prints is a verdict too, and no event.
    let names = event["report"] == nil ? ["environment", "kind"] : Self.members
    var differences = names.compactMap { Self.difference($0, own[$0], again[$0]) }
    if !isOfOlderRules(judged), event["report"] != nil,
      let found = Self.difference("explanation", own["explanation"], again["explanation"])
    {
      differences.append(found)
    }
    return differences
  }

  private static func difference(_ field: String, _ recorded: JSON?, _ judged: JSON?) -> Difference? {
    // The order of an object's members says nothing.
    guard recorded?.canonicalBytes != judged?.canonicalBytes else { return nil }
    return Difference(field: field, recorded: told(recorded), judged: told(judged))
  }

  /// Short enough to print, and nothing of a payload.
  private static func told(_ value: JSON?) -> String {
    switch value {
    case nil: "none"
    case .string(let text): text
    case .integer(let number): String(number)
    case .some(let other): "SHA-256 \(SHA256.digest(other.canonicalBytes).hex)"
    }
  }

  /// Whether an earlier version of the same rules judged.
  private func isOfOlderRules(_ judged: Judged) -> Bool {
    func parts(_ text: String?) -> (name: Substring, version: Int)? {
      guard let text, let slash = text.lastIndex(of: "/"), let version = Int(text[text.index(after: slash)...]) else {
        return nil
      }
      return (text[..<slash], version)
    }
    guard let own = parts(evidence["verifier"]?.string), let ours = parts(judged.evidence["verifier"]?.string) else {
      return false
    }
    return own.name == ours.name && own.version > 0 && own.version < ours.version
  }
}
