import Foundation
import Glibc
import PurchasesAuditing

/// A folder on disk as `audit export` writes it.
public final class DiskFolder: ArchiveFolder {
  private let path: String

  public init(_ path: String, create: Bool) throws(ArchiveFailure) {
    self.path = path
    if create, mkdir(path, 0o755) != 0, errno != EEXIST { throw ArchiveFailure(path, "can't be made") }
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
      throw ArchiveFailure(path, "is no folder")
    }
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
