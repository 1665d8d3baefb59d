import Foundation
import PurchasesContracts
import Testing

/// `docs/lifecycle.md` is what the code says, byte for byte.
struct LifecyclePageTests {
  private let file = SchemaFolder.root.deletingLastPathComponent().appendingPathComponent("docs/lifecycle.md")

  @Test func thePageIsWrittenFromTheCode() throws {
    let page = Data(Lifecycle.page.utf8)
    if ProcessInfo.processInfo.environment["WRITE_PAGES"] == "1" { try page.write(to: file) }
    // Not the texts: a failure would print both.
    #expect(try Data(contentsOf: file) == page, "docs/lifecycle.md isn't what WRITE_PAGES=1 writes")
  }

  @Test func everyTypeAndSubtypeHasItsLine() {
    for type in NotificationType.allCases { #expect(Lifecycle.page.contains("\n### `\(type.rawValue)`\n"), "\(type)") }
    #expect(Lifecycle.types.count == NotificationType.allCases.count + 1)
    #expect(Lifecycle.subtypes.count == NotificationSubtype.allCases.count + 2)
    #expect(Lifecycle.page.contains("\n### A type that isn't listed\n"))
  }

  /// What `docs/payloads.md` says a subtype goes with is where it may change the statement, and nowhere else.
  @Test func subtypesCountOnlyWithTheTypesThatApplesPagesName() throws {
    let page = try String(
      contentsOf: file.deletingLastPathComponent().appendingPathComponent("payloads.md"), encoding: .utf8)
    let section = try #require(page.components(separatedBy: "## Subtypes").dropFirst().first)
    var types: [String: Set<String>] = [:]
    for line in section.components(separatedBy: "\n## ")[0].split(separator: "\n") where line.hasPrefix("| `") {
      let cells = line.split(separator: "|").map { $0.split(separator: "`").map(String.init) }
      types[cells[0].first { $0 != " " } ?? ""] = Set(cells[1].filter { !$0.contains(" ") })
    }
    #expect(types.count == NotificationSubtype.allCases.count)
    for type in NotificationType.allCases {
      for subtype in NotificationSubtype.allCases
      where Lifecycle.statement(.known(type), .known(subtype)) != Lifecycle.statement(.known(type), nil) {
        #expect(types[subtype.rawValue]?.contains(type.rawValue) == true, "\(type) \(subtype)")
      }
    }
  }
}
