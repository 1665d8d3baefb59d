import Foundation

/// Small files and child processes.
enum File {
  static func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }

  static func write(_ bytes: [UInt8], to path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }

  /// One line on standard error.
  static func complain(_ line: String) { FileHandle.standardError.write(Data((line + "\n").utf8)) }

  static func removeFolder(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

  /// A SQLite database with what lies beside it.
  static func removeDatabase(_ path: String) {
    for suffix in ["", "-wal", "-shm", "-turn"] { unlink(path + suffix) }
  }
}

/// A program whose outcome is read from its standard output. What it has to say goes to ours.
struct Child {
  let program: String
  let arguments: [String]
  /// Whether its standard error is left unread: `openssl speed` tells its progress there.
  let isQuiet: Bool

  init(_ program: String, _ arguments: [String], isQuiet: Bool = false) {
    self.isQuiet = isQuiet
    self.program = program
    self.arguments = arguments
  }

  /// This program again, for one measured run in a process of its own.
  static func own(_ arguments: [String]) -> Child { Child("/proc/self/exe", arguments) }

  func output() throws -> String {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(fileURLWithPath: program).resolvingSymlinksInPath()
    process.arguments = arguments
    process.standardOutput = pipe
    if isQuiet { process.standardError = FileHandle.nullDevice }
    try process.run()
    let data = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw BenchFailure("\(program) \(arguments.joined(separator: " ")): exit code \(process.terminationStatus)")
    }
    return String(decoding: data, as: UTF8.self)
  }

  func sample() throws -> Sample {
    for line in try output().split(separator: "\n").reversed() {
      if let sample = Sample(line: line) { return sample }
    }
    throw BenchFailure("\(program) \(arguments.first ?? "") printed no sample")
  }
}
