import Foundation
import PurchasesTestKit
import Testing

/// The compiled executable, run as a process of its own, in a folder of its own.
final class Tool {
  let folder: URL
  /// Log and store that every call gets, as a user would set them.
  var environment: [String: String]

  static let executable = Program.executable("purchases")

  init(_ environment: [String: String] = [:]) throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("purchases-program-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    self.environment = environment
    try #require(
      FileManager.default.isExecutableFile(atPath: Self.executable.path), "no executable at \(Self.executable.path)")
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  struct Result {
    let status: Int32
    let output: String
    let errors: String
    var lines: [String] { output.split(separator: "\n").map(String.init) }
  }

  func write(_ name: String, _ text: String) throws {
    try Data(text.utf8).write(to: folder.appendingPathComponent(name))
  }

  func process(_ words: [String], output: Any, errors: Any) throws -> Process {
    let process = Process()
    process.executableURL = Self.executable
    process.arguments = words
    process.currentDirectoryURL = folder
    process.environment = ["PATH": "/usr/bin:/bin", "HOME": folder.path].merging(environment) { $1 }
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    return process
  }

  /// Runs to the end. Output goes through files, so that no pipe can fill up.
  @discardableResult
  func run(_ words: String..., input: String? = nil) throws -> Result { try run(words, input: input) }

  @discardableResult
  func run(_ words: [String], input: String? = nil) throws -> Result {
    let name = UUID().uuidString
    let out = folder.appendingPathComponent("out-\(name)")
    let err = folder.appendingPathComponent("err-\(name)")
    try Data().write(to: out)
    try Data().write(to: err)
    let process = try process(
      words, output: FileHandle(forWritingTo: out), errors: FileHandle(forWritingTo: err))
    if let input {
      let file = folder.appendingPathComponent("in-\(name)")
      try Data(input.utf8).write(to: file)
      process.standardInput = try FileHandle(forReadingFrom: file)
    }
    try process.run()
    process.waitUntilExit()
    return Result(
      status: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
      output: try String(contentsOf: out, encoding: .utf8), errors: try String(contentsOf: err, encoding: .utf8))
  }

  /// Starts and leaves running; whoever starts it ends it.
  func start(_ words: String...) throws -> Process {
    let log = folder.appendingPathComponent("started-\(UUID().uuidString)")
    try Data().write(to: log)
    let process = try process(words, output: FileHandle.nullDevice, errors: FileHandle(forWritingTo: log))
    try process.run()
    return process
  }

  static let catalogue = """
    {"version":"1","products":[
    {"id":"coins.100","type":"consumable","credits":{"unit":"coins","amount":100}},
    {"id":"pro","type":"non-consumable","entitlements":["pro"]}]}
    """

  static let stageOptions = [
    "--bundle-id", "com.example.app", "--environment", "Sandbox", "--catalogue", "catalogue.json",
  ]
}
