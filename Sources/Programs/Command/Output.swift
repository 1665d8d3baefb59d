import Foundation
import PurchasesAssembly
import PurchasesContracts
import PurchasesRunner

enum ExitStatus {
  static let usage: Int32 = 2
  /// Some input lines were refused.
  static let refused: Int32 = 3
  /// A check found something.
  static let found: Int32 = 4
  static let rejected: Int32 = 10
  static let pending: Int32 = 11
  /// Something outside failed: the log, the store, a file.
  static let failed: Int32 = 1
}

enum Output {
  static func line(_ text: String) { write(text + "\n") }

  static func write(_ text: String) { bytes(Array(text.utf8)) }

  static func bytes(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { Foundation.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if written < 0 {
        if errno == EINTR { continue }
        // Nobody reads any more: there is nothing left to do.
        exit(errno == EPIPE ? 0 : ExitStatus.failed)
      }
      rest = rest.dropFirst(written)
    }
  }

  static func error(_ text: String) { StandardError.write(Array((text + "\n").utf8)) }

  /// Prints what went wrong and answers the exit status for it.
  static func failure(_ error: any Error) -> Int32 {
    let text = "\(error)"
    Output.error(text.hasPrefix("purchases ") ? text : "purchases: \(text)")
    return error is UsageError ? ExitStatus.usage : ExitStatus.failed
  }

  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

  /// One line of progress that is written over, on a terminal only.
  static func progress(_ text: String) {
    guard isTerminal else { return }
    StandardError.write(Array("\r\u{1b}[K\(text)".utf8))
  }

  static func endProgress() {
    guard isTerminal else { return }
    StandardError.write(Array("\r\u{1b}[K".utf8))
  }
}

enum Input {
  /// The whole of a file, or of standard input for `-`.
  static func read(_ path: String, _ setting: Setting) throws(UsageError) -> [UInt8] {
    path == "-" ? standard() : try Files.read(path, setting)
  }

  static func standard() -> [UInt8] { Array(FileHandle.standardInput.readDataToEndOfFile()) }
}
