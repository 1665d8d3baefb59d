import Foundation
import PurchasesAssembly
import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesRunner

extension Verb {
  static let products = Verb(
    words: ["products"], summary: "Which products can be bought, which identifiers are invalid, and why",
    optionalArguments: ["ID"], takesMore: true,
    settings: [
      .environment.explained("where they would be bought (default Production)"),
      .at.explained("when they would be bought (RFC 3339; default now)"), .keptCatalogue, .json,
    ] + Setting.connection,
    examples: ["purchases products com.example.coins.100 com.example.gone --catalogue catalogue.json"],
    statuses: [(1, "the store can't be read"), (ExitStatus.found, "an identifier is invalid")]
  ) { call in
    let at = try instant(call, .at) ?? SystemClock().now()
    let environment = try TrustSettings.environment(call.values) ?? .production
    let ids = call.arguments.isEmpty ? nil : call.arguments
    let answer = ProductsAnswer(try history(call).inForce(at: at), ids: ids, in: environment, at: at)
    if try call.values.flag(.json) {
      Output.bytes(answer.json + [0x0a])
    } else {
      Output.line("catalogue \(answer.catalogueVersion) in \(environment.rawValue), at \(at)")
      for product in answer.products { Output.line("  \(product.id)  \(text(product))") }
      for (id, obstacles) in answer.invalid {
        Output.line("  \(id)  can't be bought: \(obstacles.map(\.rawValue).joined(separator: ", "))")
      }
    }
    return ids != nil && !answer.invalid.isEmpty ? ExitStatus.found : 0
  }

  /// The catalogue of the settings, else those of the store.
  private static func history(_ call: Call) throws -> CatalogueHistory {
    let deployment = try Deployment(call.values)
    let factory = StageFactory(call.values, deployment)
    if call.values.text(.catalogue) != nil { return CatalogueHistory(try factory.catalogue()) }
    let store = try deployment.openExistingStore()
    defer { store.close() }
    let reader = try store.reader()
    defer { reader.close() }
    return try factory.history(or: reader)
  }

  private static func text(_ product: CatalogueProduct) -> String {
    let names = product.entitlements.map(\.text).joined(separator: ", ")
    switch product.terms {
    case .consumable(let unit, let amount): return "consumable, \(amount) \(unit)"
    case .nonConsumable: return "non-consumable, gives \(names)"
    case .autoRenewable(let group, let level): return "auto-renewable, level \(level) of \(group), gives \(names)"
    case .nonRenewing(let duration): return "non-renewing, \(duration), gives \(names)"
    }
  }

  static let catalogueCheck = Verb(
    words: ["catalogue", "check"], summary: "Whether a file is a catalogue; what is wrong is told with its line",
    arguments: ["FILE"], settings: [.json], examples: ["purchases catalogue check catalogue.json"]
  ) { call in
    let file = try CatalogueReading.file(call.arguments[0])
    if try call.values.flag(.json) {
      var writer = JSONWriter()
      writer.object { json in
        json.field("version", file.catalogue.version)
        json.field("from", rfc3339: file.from)
        json.field("products", file.catalogue.all.count)
      }
      Output.bytes(writer.bytes + [0x0a])
    } else {
      let from = file.from.map { ", in force from \($0)" } ?? ""
      Output.line("version \(file.catalogue.version), \(file.catalogue.all.count) products\(from)")
    }
    return 0
  }

  static let cataloguePublish = Verb(
    words: ["catalogue", "publish"],
    summary: "Put a catalogue into force: all entitlements stages on the log take it, without a restart",
    notes: [
      "It comes into force in some seconds, when all have read of it, or at the time that the file says; the audit log covers it."
    ],
    arguments: ["FILE"], settings: [.json] + Setting.connection,
    examples: ["purchases catalogue publish catalogue.json --log kafka://localhost:9092"],
    statuses: [(1, "the log can't be written to")]
  ) { call in
    let file = try CatalogueReading.file(call.arguments[0])
    let deployment = try Deployment(call.values)
    let log = try deployment.openLogWithTopics()
    defer { log.close() }
    var catalogues = CatalogueLog(log, deployment)
    let (from, wasPublished) = try KeptCatalogue.publish(
      file, clock: deployment.clock, by: NSUserName(), &catalogues)
    if try call.values.flag(.json) {
      var writer = JSONWriter()
      writer.object { json in
        json.field("version", file.catalogue.version)
        json.field("from", rfc3339: from)
        json.field("products", file.catalogue.all.count)
        json.field("wasPublished", wasPublished)
      }
      Output.bytes(writer.bytes + [0x0a])
    } else {
      Output.line(
        "version \(file.catalogue.version), \(file.catalogue.all.count) products, "
          + "\(wasPublished ? "was published before and is" : "is") in force from \(from)")
    }
    return 0
  }

  static let catalogueHistory = Verb(
    words: ["catalogue", "history"], summary: "The catalogues that the store keeps, each with when it came into force",
    settings: [.json] + Setting.connection, examples: ["purchases catalogue history --store postgres:///purchases"],
    statuses: [(1, "the store can't be read"), (ExitStatus.found, "there is none")]
  ) { call in
    let store = try Deployment(call.values).openExistingStore()
    defer { store.close() }
    let reader = try store.reader()
    defer { reader.close() }
    let now = SystemClock().now()
    guard let history = try reader.catalogueHistory() else {
      Output.error("the store keeps no catalogue yet")
      return ExitStatus.found
    }
    let asJSON = try call.values.flag(.json)
    for version in history.versions {
      let from = version.from == .distantPast ? nil : version.from
      if asJSON {
        var writer = JSONWriter()
        writer.object { json in
          json.field("version", version.catalogue.version)
          json.field("from", rfc3339: from)
          json.field("products", version.catalogue.all.count)
        }
        Output.bytes(writer.bytes + [0x0a])
      } else {
        let isInForce = history.inForce(at: now).version == version.catalogue.version
        Output.line(
          "\(version.catalogue.version)  from \(from.map(\.rfc3339) ?? "the beginning")  "
            + "\(version.catalogue.all.count) products\(isInForce ? "  in force" : "")")
      }
    }
    return 0
  }

  static let catalogueDiff = Verb(
    words: ["catalogue", "diff"], summary: "Which products, and which accounts' access, another catalogue would change",
    notes: [
      "A and B are files, or versions that the store keeps. With a store, each account is computed under both: what it would",
      "gain and lose if B came into force after A. Credits that are booked stay; those of purchases that wait are gained.",
    ],
    arguments: ["A", "B"],
    settings: [.at.explained("compare at this time (RFC 3339; default now)"), .json]
      + Setting.connection,
    examples: ["purchases catalogue diff 2026-11 new-catalogue.json --store postgres:///purchases"],
    statuses: [(1, "the store can't be read"), (ExitStatus.found, "they differ")]
  ) { call in
    let at = try instant(call, .at) ?? SystemClock().now()
    let deployment = try Deployment(call.values)
    let store: (any Store)?
    // Files can be compared where no store is.
    do throws(UsageError) { store = try existingStore(deployment) } catch {
      guard call.arguments.allSatisfy(CatalogueReading.isFile) else { throw error }
      store = nil
    }
    defer { store?.close() }
    let reader = try store?.reader()
    defer { reader?.close() }
    let catalogues = try CatalogueReading(reader)
    let diff = CatalogueDiff(
      try catalogues.named(call.arguments[0]), next: try catalogues.named(call.arguments[1]).newest, at: at)
    let asJSON = try call.values.flag(.json)
    var report = DiffReport(asJSON: asJSON)
    report.products(diff)
    if let reader { report.accounts = try CatalogueReading.forEachAccount(of: reader, diff) { report.add($0) } }
    report.end(at)
    return report.isEmpty ? 0 : ExitStatus.found
  }

  private static func existingStore(_ deployment: Deployment) throws(UsageError) -> any Store {
    do { return try deployment.openExistingStore() } catch let error as UsageError { throw error } catch {
      throw UsageError("--store: \(error)")
    }
  }
}

/// What the comparison of two catalogues prints.
private struct DiffReport {
  let asJSON: Bool
  /// nil: without a store.
  var accounts: Int64?
  private var differing: Int64 = 0
  private var counts: [String: Int64] = [:]
  private(set) var isEmpty = true

  init(asJSON: Bool) { self.asJSON = asJSON }

  mutating func products(_ diff: CatalogueDiff) {
    isEmpty = diff.products.isEmpty
    if asJSON {
      var writer = JSONWriter()
      writer.object { json in
        json.field("products", array: { json in for product in diff.products { product.write(&json) } })
      }
      Output.bytes(writer.bytes + [0x0a])
    } else {
      for product in diff.products {
        let change = product.before == nil ? "added" : product.after == nil ? "removed" : "changed"
        Output.line("product \(product.id)  \(change)")
      }
    }
  }

  mutating func add(_ account: CatalogueDiff.Account) {
    isEmpty = false
    differing += 1
    for change in account.changes {
      counts["\(change.entitlement) \(change.step.rawValue)\(change.product.map { " by \($0)" } ?? "")", default: 0] +=
        1
    }
    if asJSON {
      var writer = JSONWriter()
      account.write(&writer)
      return Output.bytes(writer.bytes + [0x0a])
    }
    Output.line("account \(account.account) in \(account.environment.rawValue)")
    for change in account.changes {
      let by = change.product.map { "  by \($0)" } ?? ""
      switch change.step {
      case .gains: Output.line("  gains \(change.entitlement)  \(Self.end(change.after))\(by)")
      case .loses: Output.line("  loses \(change.entitlement)  that it had \(Self.end(change.before))\(by)")
      case .ends:
        Output.line("  \(change.entitlement)  \(Self.end(change.after)) and not \(Self.end(change.before))\(by)")
      }
    }
    for (unit, amount) in account.credits { Output.line("  gains \(amount) \(unit)") }
    for product in account.waitsFor { Output.line("  would wait for \(product)") }
    for product in account.waitsNoLonger { Output.line("  waits for \(product) no longer") }
  }

  private static func end(_ state: EntitlementState?) -> String {
    state?.endsAt.map { "until \($0)" } ?? "without end"
  }

  func end(_ at: Instant) {
    let sorted = counts.sorted { $0.key < $1.key }
    if asJSON {
      var writer = JSONWriter()
      writer.object { json in
        json.field("at", rfc3339: at)
        json.field("accounts", accounts)
        json.field("differing", differing)
        json.field(
          "changes",
          array: { json in
            for (what, count) in sorted {
              json.object { json in
                json.field("change", what)
                json.field("accounts", count)
              }
            }
          })
      }
      return Output.bytes(writer.bytes + [0x0a])
    }
    for (what, count) in sorted { Output.line("\(what): \(count) \(count == 1 ? "account" : "accounts")") }
    guard let accounts else { return Output.line("no store: accounts were not compared") }
    Output.line("\(differing) of \(accounts) accounts would have something else at \(at)")
  }
}
