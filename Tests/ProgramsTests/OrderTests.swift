import Foundation
import Testing

/// `purchases order` through the executable, on the embedded log.
@Suite struct OrderTests {
  private let run = ["run", "--until-idle", "--listen", "127.0.0.1:0"] + Tool.stageOptions

  /// Orders without waiting, lets the stages work, and orders the same again, which finds the answer.
  private func order(_ program: Tool, _ action: String, _ id: String, on account: String, _ words: String...) throws
    -> Tool.Result
  {
    let all =
      ["order", action, "--account", account, "--environment", "Sandbox", "--order", id, "--operator", "kim"]
      + ["--reason", "case 17"] + words
    let sent = try program.run(all + ["--wait", "0"])
    #expect(sent.status == 11 && sent.output == "order:\(id): on the log\n", "\(sent.output)\(sent.errors)")
    let worked = try program.run(run)
    #expect(worked.status == 0, "\(worked.errors)")
    return try program.run(all + ["--wait", "20"])
  }

  private func state(_ program: Tool, _ account: String, at: String? = nil) throws -> String {
    try program.run(["state", "--account", account] + (at.map { ["--at", $0] } ?? [])).output
  }

  @Test func ordersAreGivenAnsweredAndReversed() throws {
    let program = try Tool()
    try program.write("catalogue.json", Tool.catalogue)
    #expect(try program.run(run).status == 0)
    let granted = try order(program, "grant", "o1", on: "u1", "--entitlement", "pro")
    #expect(granted.status == 0 && granted.output.hasPrefix("order:o1: done (ordered) at "), "\(granted.output)")
    #expect(try state(program, "u1").contains("entitlement pro  without end"))
    // Another order under the same id is told, and has no effect.
    let other = try program.run(
      "order", "revoke", "--account", "u1", "--environment", "Sandbox", "--order", "o1", "--reason", "r",
      "--entitlement", "pro")
    #expect(other.status == 3 && other.errors == "order:o1 is another order: grant pro\n", "\(other.errors)")
    let reversed = try order(program, "reverse", "o2", on: "u1", "--reverses", "o1")
    #expect(reversed.status == 0, "\(reversed.output)")
    #expect(try state(program, "u1").contains("no entitlement"))
    let again = try order(program, "reverse", "o3", on: "u1", "--reverses", "o1")
    #expect(again.status == 3 && again.output.hasPrefix("order:o3: refused (is-over)"), "\(again.output)")

    #expect(try order(program, "adjust", "o4", on: "u1", "--unit", "coins", "--amount", "-7").status == 0)
    #expect(try state(program, "u1").contains("balance coins  -7  (debt)"))
    let ledger = try program.run("ledger", "--account", "u1")
    #expect(ledger.lines.count == 1 && ledger.output.contains("coins -7  operator  order:o4  balance -7 (debt)"))
    #expect(try order(program, "merge", "o5", on: "u1", "--to", "u2").status == 0)
    #expect(try program.run(run).status == 0)
    #expect(try state(program, "u2").contains("balance coins  -7  (debt)"))
    #expect(
      try program.run("ledger", "--account", "u2", "--unit", "coins").output.contains("transfer  from:u1/order:o5"))
    #expect(try program.run("ledger", "--account", "u2", "--unit", "gems").status == 4)
    let explained = try program.run("explain", "--account", "u1", "--entitlement", "pro").output
    #expect(explained.contains("action grant, operator kim, orderId o1, reason case 17"), "\(explained)")
    #expect(explained.contains("ordered by kim as o1: case 17"), "\(explained)")
    let lines = try program.run("explain", "--account", "u1", "--entitlement", "pro", "--json").lines
    #expect(lines[0].contains(#""account":"u2""#) && lines[0].contains(#""position":"purchases.owned/"#), "\(lines)")
    #expect(lines[1].contains(#""account":"u1""#) && lines[1].contains(#""orderId":"o1","operator":"kim""#), "\(lines)")
    // The log says who and why.
    let log = try program.run("tail", "received")
    #expect(log.output.contains("kim") && log.output.contains("case 17"))
    // And it leads there again.
    let replayed = try program.run(
      "replay", "entitlements", "--into", "sqlite:shadow.db", "--reason", "check", "--environment", "Sandbox")
    #expect(replayed.status == 0, "\(replayed.output)\(replayed.errors)")
  }

  @Test(arguments: [
    (["grant", "--entitlement", "pro", "--reason", "r"], "--account"),
    (["grant", "--account", "a", "--reason", "r"], "--entitlement"),
    (["grant", "--account", "a", "--entitlement", "pro"], "--reason"),
    (["grant", "--account", "a", "--entitlement", "pro", "--reason", "r", "--until", "soon"], "--until"),
    (["reverse", "--account", "a", "--reason", "r"], "--reverses"),
    (["adjust", "--account", "a", "--reason", "r", "--unit", "coins", "--amount", "0"], "--amount"),
    (["adjust", "--account", "a", "--reason", "r", "--unit", "coins", "--amount", "1.5"], "--amount"),
    (["transfer", "--account", "a", "--reason", "r", "--original", "x", "--to", "b"], "--original"),
    (["merge", "--account", "a", "--reason", "r"], "--to"),
    (["grant", "--account", "a", "--entitlement", "pro", "--reason", "r", "--store", "sqlite:none.db"], "none.db"),
    (["merge", "--account", "a", "--reason", String(repeating: "r", count: 5000), "--to", "b"], "reason"),
    (
      ["merge", "--account", "a", "--reason", "r", "--to", "b", "--order", String(repeating: "o", count: 257)],
      "orderId"
    ),
  ])
  func wrongOrdersAreNamedAndGiveNothing(words: [String], names: String) throws {
    let program = try Tool()
    let result = try program.run(["order"] + words)
    #expect(result.status == 2 && result.errors.contains(names), "\(result.errors)")
    #expect(!FileManager.default.fileExists(atPath: program.folder.appendingPathComponent("purchases.log.db").path))
  }
}
