import Foundation

/// A running program of ours, which lies beside the test's own executable: for tests that kill and stop it.
public final class Program {
  private let process = Process()
  private let pipe = Pipe()
  private var rest: [UInt8] = []

  public init(_ name: String, _ arguments: [String]) throws {
    process.executableURL = Self.executable(name)
    process.arguments = arguments
    process.standardOutput = pipe
    try process.run()
  }

  /// Where a program of this package lies: on Linux in the folder of the test's own executable, elsewhere that lies deeper
  /// in a bundle.
  public static func executable(_ name: String) -> URL {
    var folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
    for _ in 0..<4 {
      let candidate = folder.appendingPathComponent(name)
      if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
      folder.deleteLastPathComponent()
    }
    return folder.appendingPathComponent(name)
  }

  deinit {
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
  }

  public func send(_ signal: Int32) { kill(process.processIdentifier, signal) }

  /// The next line; nil once the program has ended and everything was read.
  public func line() -> String? {
    while true {
      if let end = rest.firstIndex(of: 10) {
        defer { rest.removeFirst(end + 1) }
        return String(decoding: rest[..<end], as: UTF8.self)
      }
      let data = pipe.fileHandleForReading.availableData
      if data.isEmpty { return nil }
      rest += data
    }
  }

  /// Reads lines until one satisfies; nil when the program ended before.
  public func line(where satisfies: (String) -> Bool) -> String? {
    while let line = line() {
      if satisfies(line) { return line }
    }
    return nil
  }

  /// Ends the program at once and answers every line it still had to say.
  public func killed() -> [String] {
    send(SIGKILL)
    var lines: [String] = []
    while let line = line() { lines.append(line) }
    process.waitUntilExit()
    return lines
  }
}
