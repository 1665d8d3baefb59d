import Foundation

/// The folder `Schemas/` of this checkout.
enum SchemaFolder {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Schemas")

  static func bytes(_ path: String) throws -> [UInt8] {
    Array(try Data(contentsOf: root.appendingPathComponent(path)))
  }

  static func names(_ folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent(folder).path).sorted()
  }

  static func example(_ name: String) throws -> [UInt8] { try bytes("examples/\(name).json") }

  /// All files of examples of data, without their ending.
  static func examples() throws -> [String] {
    try names("examples").filter { $0.hasSuffix(".json") && $0 != "headers.json" }.map { String($0.dropLast(5)) }
  }
}
