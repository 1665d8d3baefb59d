import Foundation
import PurchasesHTTPClient
import PurchasesJSON
import Testing

/// `purchases state`, `purchases explain` and the HTTP door, asked about the same accounts.
@Suite(.timeLimit(.minutes(3)))
struct ReadingTests {
  private let client = HTTPClient(.init(totalSeconds: 60))

  /// Log and store of a demo day, with a gateway in front.
  private struct Place {
    let program: Tool
    let gateway: Process
    let base: String

    func end() {
      gateway.terminate()
      gateway.waitUntilExit()
    }
  }

  private func place(_ program: Tool) throws -> Place {
    let errors = Pipe()
    let gateway = try program.process(
      ["gateway", "--listen", "127.0.0.1:0"], output: FileHandle.nullDevice, errors: errors)
    try gateway.run()
    var said = ""
    while !said.contains("\"message\":\"listening\"") || !said.hasSuffix("\n") {
      let data = errors.fileHandleForReading.availableData
      try #require(!data.isEmpty, "it ended before it listened: \(said)")
      said += String(decoding: data, as: UTF8.self)
    }
    let port = try #require(said.range(of: "127.0.0.1:").map { said[$0.upperBound...].prefix { $0.isNumber } })
    return Place(program: program, gateway: gateway, base: "http://127.0.0.1:\(port)")
  }

  private func get(_ place: Place, _ account: String, _ query: String) throws -> JSON? {
    let answer = try client.send(HTTPCall("GET", "\(place.base)/v1/accounts/\(account)\(query)"))
    try #require(answer.status == 200, "\(account): \(answer.status)")
    return try JSON(parsing: answer.body)
  }

  /// ENVIRONMENT/ACCOUNT of every account that something was written about so far.
  private func accounts(_ program: Tool) throws -> [String] {
    var found: Set<String> = []
    for line in try program.run("tail", "entitlements").lines {
      let data = try JSON(parsing: Array(line.utf8))["value"]
      guard let environment = data?["environment"]?.string, let account = data?["account"]?.string else { continue }
      found.insert("\(environment)/\(account)")
    }
    return found.sorted()
  }

  private func without(_ json: JSON?, _ names: String...) throws -> JSON {
    var object = try #require(json?.object)
    for name in names { object[name] = nil }
    return .object(object)
  }

  @Test func allAnswerTheSameAtEveryInstant() throws {
    let program = try Tool(["PURCHASES_LOG": "sqlite:day.log.db", "PURCHASES_STORE": "sqlite:day.db"])
    let demo = try program.run("demo", "--accounts", "40", "--seed", "11")
    #expect(demo.status == 0, "\(demo.output)")
    let place = try place(program)
    defer { place.end() }
    let accounts = try accounts(program)
    try #require(accounts.count > 20)
    var kinds: Set<String> = []
    for account in accounts {
      let name = String(account.split(separator: "/")[1])
      let environment = String(account.split(separator: "/")[0])
      for at in ["2026-06-01T06:00:00.000Z", "2026-06-01T18:30:00.000Z", "2026-06-02T00:00:00.000Z"] {
        let state = try program.run(
          "state", "--account", name, "--environment", environment, "--at", at, "--json")
        let told = try JSON(parsing: Array(try #require(state.lines.first).utf8))
        let asked = try get(place, account, "?at=\(at)&chains=true")
        #expect(asked == told, "\(account) at \(at)")
        #expect(told["at"]?.string == at && told["position"]?.string?.hasPrefix("purchases.owned/") == true)
        for kind in ["entitlements", "balances", "permits", "chains", "waitingFor"]
        where told[kind]?.array?.isEmpty == false { kinds.insert(kind) }
      }
      let explained = try program.run("explain", "--account", name, "--environment", environment, "--json")
      let head = try JSON(parsing: Array(try #require(explained.lines.first).utf8))
      #expect(try without(head, "at") == without(get(place, account, ""), "at"), "\(account)")
      // The newest change is the account's version.
      let newest = try JSON(parsing: Array(try #require(explained.lines.last).utf8))
      #expect(newest["version"]?.int64 == head["version"]?.int64, "\(account)")
    }
    #expect(kinds.isSuperset(of: ["entitlements", "balances", "permits", "chains"]), "\(kinds)")
  }

  /// While the stages write: two answers of one position are one answer, and none goes back.
  @Test func answersOfOnePositionAreOneAnswerWhileTheStagesWrite() throws {
    let program = try Tool(["PURCHASES_LOG": "sqlite:day.log.db", "PURCHASES_STORE": "sqlite:day.db"])
    let demo = try program.start("demo", "--accounts", "400", "--seed", "12")
    defer { if demo.isRunning { kill(demo.processIdentifier, SIGKILL) } }
    while !FileManager.default.fileExists(atPath: program.folder.path + "/day.db") {
      try #require(demo.isRunning, "it ended")
      usleep(5_000)
    }
    let place = try place(program)
    defer { place.end() }
    var known: [String] = []
    var seen: [String: (position: String, content: JSON, version: Int64)] = [:]
    var (repeated, moved) = (0, 0)
    while demo.isRunning {
      if known.count < 30 { known = Array(try accounts(program).prefix(60)) }
      for account in known {
        let answer = try without(get(place, account, "?at=2026-06-02T00:00:00.000Z"))
        let position = try #require(answer["position"]?.string)
        let version = try #require(answer["version"]?.int64)
        if let before = seen[account] {
          #expect(version >= before.version, "\(account) went back")
          if before.position == position {
            repeated += 1
            #expect(answer == before.content, "\(account) at \(position)")
          } else {
            moved += 1
          }
        }
        seen[account] = (position, answer, version)
      }
    }
    demo.waitUntilExit()
    #expect(demo.terminationStatus == 0, "the demo's own proofs hold beside the readers")
    #expect(repeated > 0 && moved > 0, "\(repeated) repeated, \(moved) moved")
  }
}
