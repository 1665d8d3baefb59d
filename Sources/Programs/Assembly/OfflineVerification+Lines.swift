import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesVerification

extension OfflineVerification {
  /// Where a proof of many came from.
  public struct Line: Sendable {
    let number: Int
    let id: String?
  }

  /// A line as it was written: a compact JWS by itself, or a JSON object around it.
  private struct Asked {
    let proof: [UInt8]
    let kind: ProofKind?
    let at: Instant?
    let id: String?

    init(_ line: [UInt8]) throws(FieldFailure) {
      guard line.first == UInt8(ascii: "{") else {
        proof = line
        kind = nil
        at = nil
        id = nil
        return
      }
      let fields = try Fields(parsing: line)
      guard let proof = fields.member("jws")?.utf8 else { throw fields.failure("jws", "must be a string") }
      self.proof = proof
      if let text = try fields.text("kind") {
        guard let kind = ProofKind(rawValue: text) else { throw fields.failure("kind", "is not a known kind of proof") }
        self.kind = kind
      } else {
        kind = nil
      }
      at = try fields.instant("at")
      id = try fields.text("id")
    }
  }

  /// Judges one proof a line and hands out one line of JSON for each, in their order. Empty lines are passed over.
  ///
  /// - Parameters:
  ///   - kind: of lines that name none; `at` likewise.
  /// - Returns: how many lines were neither a proof nor an object around one.
  public mutating func run(
    lines: [UInt8], kind: ProofKind?, at: Instant, _ output: ([UInt8]) -> Void
  ) throws(UsageError) -> Int {
    var unreadable = 0
    var number = 0
    for bytes in lines.split(separator: 0x0a, omittingEmptySubsequences: false) {
      number += 1
      let line = bytes.last == 0x0d ? bytes.dropLast() : bytes
      guard line.contains(where: { $0 != 0x20 && $0 != 0x09 }) else { continue }
      let asked: Asked
      do { asked = try Asked(Array(line)) } catch {
        unreadable += 1
        var writer = JSONWriter()
        writer.object { json in
          json.field("line", number)
          json.field("verdict", "unreadable")
          json.field("explanation", error.description)
        }
        output(writer.bytes + [0x0a])
        continue
      }
      let place = Line(number: number, id: asked.id)
      let verdict = try run(asked.proof, kind: asked.kind ?? kind, at: asked.at ?? at, line: place).json
      // A payload stands in it as it was signed, line breaks included; within texts JSON has none.
      output(verdict.dropLast().map { $0 == 0x0a || $0 == 0x0d ? 0x20 : $0 } + [0x0a])
    }
    return unreadable
  }
}
