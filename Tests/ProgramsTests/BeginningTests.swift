import Foundation
import PurchasesTestKit
import Testing

/// A service that is started while its store is away, as by a supervisor in the middle of an outage.
@Suite struct BeginningTests {
  static let postgres = ProcessInfo.processInfo.environment["PURCHASES_TEST_POSTGRES"]

  /// A folder where a server's socket may be, and is not yet.
  private func away(_ tool: Tool, more: String = "") throws -> URL {
    let folder = tool.folder.appendingPathComponent("socket")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    tool.environment["PURCHASES_LOG"] = "sqlite:log.db"
    tool.environment["PURCHASES_STORE"] = "postgres:///purchases?host=\(folder.path)&user=purchases\(more)"
    try tool.write("catalogue.json", Tool.catalogue)
    return folder
  }

  private func start(_ tool: Tool, _ words: [String]) throws -> (Process, said: () throws -> String) {
    let log = tool.folder.appendingPathComponent("said")
    try Data().write(to: log)
    let process = try tool.process(words, output: FileHandle.nullDevice, errors: FileHandle(forWritingTo: log))
    try process.run()
    return (process, { try String(contentsOf: log, encoding: .utf8) })
  }

  private func wait(for words: String, _ process: Process, _ said: () throws -> String) throws {
    while true {
      let text = try said()
      if text.contains(words) { return }
      try #require(process.isRunning, "it ended: \(text)")
      usleep(20_000)
    }
  }

  @Test(arguments: [["stage", "entitlements"] + Tool.stageOptions, ["gateway", "--listen", "127.0.0.1:0"]])
  func itWaitsForAStoreThatIsAwayAndStopsWhenItIsTold(_ words: [String]) throws {
    let tool = try Tool()
    _ = try away(tool)
    let (process, said) = try start(tool, words)
    defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
    try wait(for: "store can't be reached yet", process, said)
    // Each try names the reason: whoever mistyped the address reads it at once.
    #expect(try said().contains("No such file or directory"))
    process.terminate()
    process.waitUntilExit()
    #expect(process.terminationReason == .exit)
    let text = try said()
    #expect(process.terminationStatus == 0, "\(text)")
  }

  @Test(.enabled(if: postgres != nil, "needs PostgreSQL (PURCHASES_TEST_POSTGRES)"))
  func itGoesOnWhenTheStoreIsThere() throws {
    let server = try #require(Self.postgres)
    let schema = "begin_\(getpid())"
    let tool = try Tool()
    let folder = try away(tool, more: "&options=-csearch_path%3D\(schema)")
    let psql = Process()
    psql.executableURL = URL(fileURLWithPath: "/usr/bin/psql")
    psql.arguments = ["-X", "-q", "-d", server, "-c", "CREATE SCHEMA \(schema)"]
    try psql.run()
    psql.waitUntilExit()
    try #require(psql.terminationStatus == 0)
    let (process, said) = try start(tool, ["stage", "entitlements"] + Tool.stageOptions + ["--instance", "one"])
    defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
    try wait(for: "store can't be reached yet", process, said)
    let host = try #require(URLComponents(string: server)?.queryItems?.first { $0.name == "host" }?.value)
    let name = ".s.PGSQL.5432"
    try FileManager.default.createSymbolicLink(
      atPath: folder.appendingPathComponent(name).path, withDestinationPath: "\(host)/\(name)")
    try wait(for: #""message":"ready""#, process, said)
    process.terminate()
    process.waitUntilExit()
    let text = try said()
    #expect(process.terminationStatus == 0, "\(text)")
  }

  @Test func whatNoTimeWillMendIsToldAtOnce() throws {
    let tool = try Tool()
    _ = try away(tool)
    tool.environment["PURCHASES_STORE"] = "postgres:///purchases?nonsense=1"
    let result = try tool.run(["stage", "entitlements"] + Tool.stageOptions)
    #expect(result.status != 0)
    #expect(!result.errors.contains("yet"), "\(result.errors)")
  }
}
