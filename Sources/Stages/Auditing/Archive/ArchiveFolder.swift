/// A folder of files, named without paths, as `audit export` writes them and `audit verify --from` reads them.
public protocol ArchiveFolder: AnyObject {
  func append(_ bytes: [UInt8], to name: String) throws(ArchiveFailure)
  /// Fewer bytes than asked for only at the end of the file.
  func read(_ name: String, at position: Int, count: Int) throws(ArchiveFailure) -> [UInt8]
  /// In bytes; nil for a file that is not there.
  func size(of name: String) throws(ArchiveFailure) -> Int?
  func names() throws(ArchiveFailure) -> [String]
}

public struct ArchiveFailure: Error, Sendable, Hashable, CustomStringConvertible {
  public let file: String
  public let reason: String

  public init(_ file: String, _ reason: String) {
    self.file = file
    self.reason = reason
  }

  public var description: String { "\(file): \(reason)" }
}
