import Foundation
import PurchasesJSON
import Testing

/// `purchases appstore --gateway`: a scenario against a gateway that is there, is not there, or goes away.
@Suite struct PlayTests {
  /// A port that was free a moment ago, and that nobody listens on.
  private static let closed = "http://127.0.0.1:9"

  @Test func aGatewayThatIsNotThereIsToldAtOnceAndItsRootAndCatalogueAreWritten() throws {
    let program = try Tool()
    let result = try program.run("appstore", "--gateway", Self.closed, "--dir", "scenario", "--accounts", "40")
    #expect(result.status == 1)
    #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
    #expect(result.errors.hasPrefix("purchases: --gateway \(Self.closed): the gateway can't be reached ("))
    #expect(result.errors.contains("scenario holds the root and the catalogue"))
    #expect(result.output.isEmpty)
    for name in ["scenario-root.der", "scenario-catalogue.json"] {
      let data = FileManager.default.contents(atPath: program.folder.path + "/scenario/" + name)
      #expect((data?.count ?? 0) > 100, "\(name)")
    }
    let unknown = try program.run("appstore", "--gateway", "127.0.0.1:9")
    #expect(unknown.status == 2 && unknown.errors.contains("must be a URL"))
  }

  @Test func aPlayTellsThatItsGatewayIsGoneAndEndsUnfinishedWhenAsked() throws {
    let program = try Tool()
    let (gateway, said) = try listening(program, ["gateway", "--listen", "127.0.0.1:0"])
    defer { if gateway.isRunning { kill(gateway.processIdentifier, SIGKILL) } }
    let port = try #require(said.range(of: "127.0.0.1:").map { said[$0.upperBound...].prefix { $0.isNumber } })
    let errors = Pipe()
    let output = program.folder.appendingPathComponent("report.json")
    try Data().write(to: output)
    let play = try program.process(
      ["appstore", "--gateway", "http://127.0.0.1:\(port)", "--accounts", "40", "--json"],
      output: FileHandle(forWritingTo: output), errors: errors)
    try play.run()
    // No stage runs, so that its first clients wait for their permits; each of their questions is held open for 20 s.
    let watchdog = end(play, after: 15)
    defer { watchdog.cancel() }
    while try program.run("tail", "received", "--limit", "1").lines.isEmpty {
      try #require(play.isRunning, "it ended before it was asked to")
    }
    gateway.terminate()
    gateway.waitUntilExit()
    var told = ""
    while !told.contains("they are sent again") {
      let data = errors.fileHandleForReading.availableData
      try #require(!data.isEmpty, "it ended in silence: \(told)")
      told += String(decoding: data, as: UTF8.self)
    }
    play.terminate()
    play.waitUntilExit()
    told += String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    #expect(play.terminationReason == .exit && play.terminationStatus == 1)
    #expect(told.contains("stopped before the scenario was over"), "\(told)")
    let report = try JSONDocument(parsing: Array(Data(contentsOf: output))).root
    #expect(report["isComplete"]?.bool == false)
    #expect((report["posted"]?.members.count ?? 0) > 0, "what was taken is told")
  }

  @Test func aClientThatWaitsDoesNotHoldUpAStop() throws {
    let program = try Tool()
    let (gateway, said) = try listening(program, ["gateway", "--listen", "127.0.0.1:0"])
    defer { kill(gateway.processIdentifier, SIGKILL) }
    let port = try #require(said.range(of: "127.0.0.1:").map { said[$0.upperBound...].prefix { $0.isNumber } })
    let play = try program.process(
      ["appstore", "--gateway", "http://127.0.0.1:\(port)", "--accounts", "40"],
      output: FileHandle.nullDevice, errors: FileHandle.nullDevice)
    try play.run()
    let watchdog = end(play, after: 15)
    defer { watchdog.cancel() }
    while try program.run("tail", "received", "--limit", "1").lines.isEmpty {
      try #require(play.isRunning, "it ended before it was asked to")
    }
    play.terminate()
    play.waitUntilExit()
    #expect(play.terminationReason == .exit && play.terminationStatus == 1)
  }

  /// Starts a service and waits until it says that it listens.
  private func listening(_ program: Tool, _ words: [String]) throws -> (Process, String) {
    let errors = Pipe()
    let process = try program.process(words, output: FileHandle.nullDevice, errors: errors)
    try process.run()
    var said = ""
    while !said.contains("\"message\":\"listening\"") || !said.hasSuffix("\n") {
      let data = errors.fileHandleForReading.availableData
      try #require(!data.isEmpty, "it ended before it listened: \(said)")
      said += String(decoding: data, as: UTF8.self)
    }
    return (process, said)
  }

  /// Below the time that a question may be held open: a play that waits for its clients is found out.
  private func end(_ process: Process, after seconds: Double) -> DispatchWorkItem {
    let identifier = process.processIdentifier
    let watchdog = DispatchWorkItem { kill(identifier, SIGKILL) }
    DispatchQueue.global().asyncAfter(deadline: .now() + seconds, execute: watchdog)
    return watchdog
  }
}
