import Foundation
import PurchasesAuditing

/// A real folder.
final class DiskFolder: ArchiveFolder {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("audit-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func file(_ name: String) -> URL { url.appendingPathComponent(name) }

  func append(_ bytes: [UInt8], to name: String) throws(ArchiveFailure) {
    do {
      if !FileManager.default.fileExists(atPath: file(name).path) { try Data().write(to: file(name)) }
      let handle = try FileHandle(forWritingTo: file(name))
      defer { try? handle.close() }
      try handle.seekToEnd()
      try handle.write(contentsOf: Data(bytes))
    } catch { throw ArchiveFailure(name, "\(error)") }
  }

  func read(_ name: String, at position: Int, count: Int) throws(ArchiveFailure) -> [UInt8] {
    do {
      let handle = try FileHandle(forReadingFrom: file(name))
      defer { try? handle.close() }
      try handle.seek(toOffset: UInt64(position))
      return Array(try handle.read(upToCount: count) ?? Data())
    } catch { throw ArchiveFailure(name, "\(error)") }
  }

  func size(of name: String) throws(ArchiveFailure) -> Int? {
    (try? FileManager.default.attributesOfItem(atPath: file(name).path)[.size] as? Int) ?? nil
  }

  func names() throws(ArchiveFailure) -> [String] {
    do { return try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() } catch {
      throw ArchiveFailure("folder", "\(error)")
    }
  }
}

/// The same in memory, for tests that change thousands of bytes.
final class MemoryFolder: ArchiveFolder {
  var files: [String: [UInt8]] = [:]

  init() {}

  init(_ folder: any ArchiveFolder) throws {
    for name in try folder.names() { files[name] = try folder.read(name, at: 0, count: folder.size(of: name) ?? 0) }
  }

  func append(_ bytes: [UInt8], to name: String) throws(ArchiveFailure) { files[name, default: []] += bytes }

  func read(_ name: String, at position: Int, count: Int) throws(ArchiveFailure) -> [UInt8] {
    guard let file = files[name] else { throw ArchiveFailure(name, "is not there") }
    return Array(file.dropFirst(position).prefix(count))
  }

  func size(of name: String) throws(ArchiveFailure) -> Int? { files[name]?.count }

  func names() throws(ArchiveFailure) -> [String] { files.keys.sorted() }
}
