import Foundation
import Glibc

public enum Files {
  static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

  /// The whole of a file; the error names the setting and the path.
  public static func read(_ path: String, _ setting: Setting) throws(UsageError) -> [UInt8] {
    do { return try read(path) } catch { throw UsageError("--\(setting.name) \(path): can't be read: \(error.reason)") }
  }

  /// Files end in a newline, which is no part of the proof in them.
  static func withoutTrailingSpace(_ bytes: [UInt8]) -> [UInt8] {
    let end = bytes.lastIndex { $0 != 0x0a && $0 != 0x0d && $0 != 0x20 }.map { $0 + 1 } ?? 0
    return Array(bytes[..<end])
  }

  /// What the system says of a call that failed.
  struct SystemFailure: Error {
    let reason: String
    init(_ code: Int32 = errno) { reason = String(cString: strerror(code)) }
  }

  private static let block = 1 << 16

  static func read(_ path: String) throws(SystemFailure) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw SystemFailure() }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: block)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw SystemFailure()
      }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
    }
  }

  /// A secret of 32 bytes in a file that only its owner reads; made on first use. Two processes that make it at once end
  /// with the same one: the first to link it wins.
  static func secret(_ path: String, _ setting: Setting) throws(UsageError) -> [UInt8] {
    if FileManager.default.fileExists(atPath: path) {
      let seed = try read(path, setting)
      guard seed.count == 32 else {
        throw UsageError("--\(setting.name) \(path): must hold 32 bytes and holds \(seed.count)")
      }
      return seed
    }
    var generator = SystemRandomNumberGenerator()
    let seed = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    let fresh = "\(path).\(getpid()).new"
    let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    guard descriptor >= 0 else {
      throw UsageError("--\(setting.name) \(path): can't be made: \(SystemFailure().reason)")
    }
    defer { unlink(fresh) }
    let written = write(descriptor, seed, seed.count)
    let synced = fsync(descriptor)
    close(descriptor)
    guard written == seed.count, synced == 0 else { throw UsageError("--\(setting.name) \(path): can't be written") }
    guard link(fresh, path) == 0 || errno == EEXIST else {
      throw UsageError("--\(setting.name) \(path): can't be made: \(SystemFailure().reason)")
    }
    return try read(path, setting)
  }
}
