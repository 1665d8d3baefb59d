extension Lifecycle {
  /// `docs/lifecycle.md`: the table for people.
  public static var page: String {
    var page = """
      # What a notification does

      <!-- Written from Sources/Core/Contracts/Lifecycle; to change it, change that and run
           WRITE_PAGES=1 swift test --filter LifecyclePageTests -->

      A notification's type decides nothing by itself: what is signed inside does, in the order of its own dates, whatever came
      before or comes late. This page says what comes of that: for every state of a purchase, every type and every subtype. A test
      brings a purchase into each state, sends each notification to ownership and entitlements, and compares; each cell is
      also sent a second time, which changes nothing, and without any proof inside, which changes nothing either.

      It speaks of the newest statement. One that a newer one has overtaken changes nothing ([access.md](access.md)).


      """
    page += "## Where a purchase stands\n\nFacts, each by itself; no status word is kept anywhere.\n\n"
    page += table(
      ["state", "what it is", "paid", "auto-renew", "next product", "billing retry", "grace", "revoked", "replaced"],
      State.allCases.map { state in
        let facts = state.facts
        func word(_ fact: Bool) -> String { fact ? "yes" : "-" }
        return [
          state.rawValue, state.meaning, word(facts.isPaid), facts.renews.map { $0 ? "on" : "off" } ?? "-",
          facts.changesProduct ? "another" : "-", word(facts.isInRetry), word(facts.isInGrace),
          word(facts.isRevoked), word(facts.isReplaced),
        ]
      })
    page += "\n## What is inside a notification\n\n"
    page += table(["inside", "what it is"], Statement.allCases.map { [$0.rawValue, $0.meaning] })
    page += "\n## What comes of it\n\n"
    page += table(
      ["access or credits", "what it is"], Effect.Access.allCases.map { ["**\($0.rawValue)**", $0.meaning] })
    page += "\n"
    page += table(["how it goes on", "what it is"], Effect.Renewal.allCases.map { [$0.rawValue, $0.meaning] })
    page += """

      `-` is unchanged in both. What is given back before anybody knew it leaves a tombstone: the purchase that comes later
      gives nothing. To an account without a subscription a notification about one tells of its first.


      """
    page += table(
      ["inside"] + State.allCases.map(\.rawValue),
      Statement.allCases.map { statement in
        [statement.rawValue] + State.allCases.map { effect(of: statement, in: $0).text }
      })
    page +=
      "\n## Every type and subtype\n\nA subtype that isn't named with a type has the effect of \"any other\" there.\n"
    for type in types { page += section(type) }
    return page
  }

  /// One line per state, one column per statement that the subtypes come to.
  private static func section(_ type: Stated<NotificationType>) -> String {
    var columns: [(title: String, statement: Statement)] = []
    let rest = statement(type, nil)
    for subtype in subtypes {
      guard let known = subtype?.known, statement(type, subtype) != rest else { continue }
      let statement = statement(type, subtype)
      if let index = columns.firstIndex(where: { $0.statement == statement }) {
        columns[index].title += ", `\(known.rawValue)`"
      } else {
        columns.append(("`\(known.rawValue)`", statement))
      }
    }
    columns.append((columns.isEmpty ? "any subtype, or none" : "any other subtype, or none", rest))
    let title = type.known.map { "`\($0.rawValue)`" } ?? "A type that isn't listed"
    let inside = columns.map { "\($0.title): \($0.statement.rawValue)" }.joined(separator: "; ")
    return "\n### \(title)\n\nInside, with \(inside).\n\n"
      + table(
        ["state"] + columns.map(\.title),
        State.allCases.map { state in
          [state.rawValue] + columns.map { effect(of: $0.statement, in: state).text }
        })
  }

  private static func table(_ head: [String], _ rows: [[String]]) -> String {
    func line(_ cells: [String]) -> String { "| \(cells.joined(separator: " | ")) |\n" }
    return line(head) + line(head.map { _ in "---" }) + rows.map(line).joined()
  }
}
