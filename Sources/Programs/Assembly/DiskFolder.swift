import Foundation
import Glibc
import PurchasesAuditing

/// A folder on disk as `audit export` writes it.
public final class DiskFolder: ArchiveFolder {
  private let path: String

  /// A folder to read from.
  /// - Parameter flag: what the person gave the path with, for messages.
  public init(_ path: String, flag: String) throws(ArchiveFailure) {
    self.path = path
    var status = stat()
    guard stat(path, &status) == 0 else {
      throw ArchiveFailure("--\(flag) \(path)", "can't be read: \(Files.SystemFailure().reason)")
    }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw ArchiveFailure("--\(flag) \(path)", "is no folder") }
  }

  /// A folder to write into, made where it is missing; one with something in it is not written over.
  public convenience init(empty path: String, flag: String) throws {
    if mkdir(path, 0o755) != 0, errno != EEXIST {
      throw ArchiveFailure("--\(flag) \(path)", "can't be made: \(Files.SystemFailure().reason)")
    }
    try self.init(path, flag: flag)
    guard try names().isEmpty else { throw UsageError("--\(flag) \(path): the folder is not empty") }
  }

  private func opened(_ name: String, _ flags: Int32) throws(ArchiveFailure) -> Int32 {
    guard !name.contains("/"), name != ".", name != ".." else { throw ArchiveFailure(name, "is no plain name") }
    let descriptor = open("\(path)/\(name)", flags, 0o644)
    guard descriptor >= 0 else { throw ArchiveFailure(name, "can't be opened: \(String(cString: strerror(errno)))") }
    return descriptor
  }

  public func append(_ bytes: [UInt8], to name: String) throws(ArchiveFailure) {
    let descriptor = try opened(name, O_WRONLY | O_CREAT | O_APPEND)
    defer { close(descriptor) }
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if written < 0 {
        if errno == EINTR { continue }
        throw ArchiveFailure(name, "can't be written: \(String(cString: strerror(errno)))")
      }
      rest = rest.dropFirst(written)
    }
    guard fsync(descriptor) == 0 else {
      throw ArchiveFailure(name, "can't be written: \(String(cString: strerror(errno)))")
    }
  }

  public func read(_ name: String, at position: Int, count: Int) throws(ArchiveFailure) -> [UInt8] {
    let descriptor = try opened(name, O_RDONLY)
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      let found = bytes.withUnsafeMutableBytes { buffer in
        pread(descriptor, buffer.baseAddress?.advanced(by: filled), count - filled, position + filled)
      }
      if found < 0 {
        if errno == EINTR { continue }
        throw ArchiveFailure(name, "can't be read: \(String(cString: strerror(errno)))")
      }
      if found == 0 { break }
      filled += found
    }
    bytes.removeLast(count - filled)
    return bytes
  }

  public func size(of name: String) throws(ArchiveFailure) -> Int? {
    var status = stat()
    guard stat("\(path)/\(name)", &status) == 0 else { return nil }
    return Int(status.st_size)
  }

  public func names() throws(ArchiveFailure) -> [String] {
    do { return try FileManager.default.contentsOfDirectory(atPath: path).sorted() } catch {
      throw ArchiveFailure(path, "can't be listed")
    }
  }
}
