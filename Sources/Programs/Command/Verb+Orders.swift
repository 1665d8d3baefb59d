import Foundation
import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesRunner

extension Setting {
  static let ordered = Setting(
    "order", "ID", "the order's own id: the same one again has one effect (default: a new one)")
  static let until = Setting("until", "TIME", "when it ends (RFC 3339; default: never)")
  static let reverses = Setting("reverses", "ID", "the order that has no effect from now on")
  static let unit = Setting("unit", "NAME", "the unit of credits")
  static let amount = Setting("amount", "N", "whole credits to add; below zero: to take away")
  static let original = Setting("original", "ID", "the purchase: the chain's first transaction")
  static let toAccount = Setting("to", "A", "the account that receives")
  static let wait = Setting("wait", "SECONDS", "how long to wait for the answer; 0: not at all", standard: "10")

  static let ofAccessOrders: [Setting] =
    [
      .account,
      .environment.explained("the account's: Production, Sandbox, Xcode or LocalTesting (default Production)"),
      .reason, .operatorName.explained("who orders it (default: your user name)"), .ordered, .wait, .json,
    ] + connection
}

/// What people order about accounts: through the log, with who and why.
extension Verb {
  static let orders: [Verb] = [
    ordering(
      "grant", "Give an account an entitlement by hand", [.orderedEntitlement, .until],
      "--entitlement pro --until 2027-01-01T00:00:00Z --reason 'case 4711'"
    ) { call throws(UsageError) in
      .grant(try entitlement(call), until: try instant(call, .until))
    },
    ordering(
      "revoke", "End what an account has of an entitlement, bought or given; with --until what is left then goes on",
      [.orderedEntitlement, .until], "--entitlement pro --reason 'chargeback'"
    ) { call throws(UsageError) in
      .revoke(try entitlement(call), until: try instant(call, .until))
    },
    ordering(
      "reverse", "Take a grant or revocation back, from now on", [.reverses],
      "--reverses 6f1c… --reason 'wrong account'"
    ) { call throws(UsageError) in
      .reverse(orderID: try needed(call, .reverses))
    },
    ordering(
      "adjust", "Add credits to an account or take some away", [.unit, .amount],
      "--unit coins --amount 50 --reason 'outage of 30 November'"
    ) { call throws(UsageError) in
      guard let unit = CreditUnit(try needed(call, .unit)) else {
        throw UsageError("--unit: is not the name of a unit")
      }
      let most = AccessOrdered.maximumAdjustment
      _ = try needed(call, .amount)
      guard let amount = try call.values.number(.amount, -most...most), amount != 0 else {
        throw UsageError("--amount: must not be 0")
      }
      return .adjust(unit, amount: amount)
    },
    ordering(
      "transfer", "Give a purchase of an account to another one", [.original, .toAccount],
      "--original 2000000632750685 --to 7f9c… --reason 'case 4711'"
    ) { call throws(UsageError) in
      let text = try needed(call, .original)
      guard IdentifierRule.isDecimal(text), let original = OriginalTransactionID(text) else {
        throw UsageError("--original: is no transaction id")
      }
      return .transfer(original, to: try receiver(call))
    },
    ordering(
      "merge", "Make an account another one, with all that it has", [.toAccount],
      "--to 7f9c… --reason 'signed in after buying'"
    ) { call throws(UsageError) in
      .merge(into: try receiver(call))
    },
  ]

  private static func ordering(
    _ action: String, _ summary: String, _ own: [Setting], _ example: String,
    _ order: @escaping @Sendable (Call) throws(UsageError) -> AccessOrdered.Order
  ) -> Verb {
    Verb(
      words: ["order", action], summary: summary,
      notes: ["It is an event on the log, and its answer is in the store once the stages have worked it off."],
      settings: own + Setting.ofAccessOrders,
      examples: ["purchases order \(action) --account 0f4c… \(example)"],
      statuses: [
        (1, "log or store can't be reached"), (ExitStatus.refused, "refused, or in conflict with an earlier order"),
        (ExitStatus.pending, "on the log, and not answered yet"),
      ]
    ) { call in
      let account = try account(call)
      let kind = try order(call)
      let ordered = AccessOrdered(
        environment: try TrustSettings.environment(call.values) ?? .production, account: account, order: kind,
        orderID: call.values.text(.ordered) ?? OperatorOrder.newID(),
        operatorName: call.values.text(.operatorName) ?? NSUserName(), reason: try needed(call, .reason))
      let seconds = try call.values.number(.wait, 0...86_400) ?? 10
      let asked: OperatorOrder
      do throws(FieldFailure) { asked = try OperatorOrder(ordered) } catch { throw UsageError("\(error)") }
      return try carryOut(call, asked, milliseconds: Int64(seconds) * 1000)
    }
  }

  private static func carryOut(_ call: Call, _ order: OperatorOrder, milliseconds: Int64) throws -> Int32 {
    let stop = StopSignal()
    Signals.stop(stop)
    let deployment = try Deployment(call.values)
    // Before anything is ordered: an answer that can't be looked for is told now.
    let store = milliseconds > 0 ? try deployment.openExistingStore() : nil
    defer { store?.close() }
    let reader = try store?.reader()
    defer { reader?.close() }
    let log = try deployment.openLogWithTopics()
    defer { log.close() }
    try order.publish(on: log, deployment.topics, clock: deployment.clock)
    let found = try reader.flatMap { try order.answer(from: $0, withinMilliseconds: milliseconds, unless: stop) }
    let isConflict = found?.isConflict(with: order.request.asked) ?? false
    if try call.values.flag(.json) {
      var writer = JSONWriter()
      writer.object { json in
        json.field("request", order.request.name)
        json.field("asked", order.request.asked)
        json.field("conflict", isConflict)
        if let found { json.field("answer", object: { found.write(&$0) }) }
      }
      Output.bytes(writer.bytes + [0x0a])
    } else if let found, !isConflict {
      Output.line("\(order.request.name): \(found.outcome.rawValue) (\(found.reason)) at \(found.recordedAt)")
    } else {
      Output.line("\(order.request.name): on the log")
    }
    guard let found else { return ExitStatus.pending }
    if isConflict {
      Output.error("\(order.request.name) is another order: \(found.asked ?? "it isn't known any more which")")
    }
    return isConflict || found.outcome == .refused ? ExitStatus.refused : 0
  }

  private static func needed(_ call: Call, _ setting: Setting) throws(UsageError) -> String {
    guard let text = call.values.text(setting), !text.isEmpty else {
      throw UsageError("purchases \(call.verb.name): needs --\(setting.name) \(setting.placeholder ?? "")")
    }
    return text
  }

  private static func entitlement(_ call: Call) throws(UsageError) -> EntitlementID {
    guard let entitlement = EntitlementID(try needed(call, .orderedEntitlement)) else {
      throw UsageError("--entitlement: is not the name of an entitlement")
    }
    return entitlement
  }

  private static func receiver(_ call: Call) throws(UsageError) -> Account {
    guard let account = Account(try needed(call, .toAccount)) else {
      throw UsageError("--to: is not the name of an account")
    }
    return account
  }
}

extension Setting {
  static let orderedEntitlement = Setting("entitlement", "NAME", "the entitlement")
}
