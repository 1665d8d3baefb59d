import Testing

@testable import PurchasesVerification

struct ReasonTests {
  @Test func codesAreUniqueStableWords() {
    let codes = Reason.all.map(\.code)
    #expect(Set(codes).count == codes.count)
    for code in codes {
      #expect(code.utf8.allSatisfy { ($0 >= 97 && $0 <= 122) || $0 == 45 || ($0 >= 48 && $0 <= 57) }, "\(code)")
      #expect(Reason(code: code)?.code == code)
    }
    #expect(Reason(code: "no-such-reason") == nil)
  }

  @Test func everyReasonIsASentenceAndStandsInTheDocumentation() throws {
    let text = String(decoding: try Fixture.bytes("../../../docs/verdicts.md"), as: UTF8.self)
    for reason in Reason.all {
      #expect(reason.explanation.hasSuffix(".") && !reason.explanation.dropLast().contains("."))
      #expect(text.contains("| `\(reason.code)` | \(reason.explanation)"), "\(reason.code)")
    }
    for reason in PendingReason.allCases { #expect(text.contains("| `\(reason.rawValue)` | \(reason.explanation)")) }
  }
}
