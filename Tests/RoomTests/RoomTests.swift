import Foundation
import Testing

/// Holds the imports and the public signatures to the rooms of ARCHITECTURE.md. Reads the sources as text, doors included,
/// which the compiler's own check leaves out.
@Suite struct RoomTests {
  static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Sources")

  struct Room {
    let folder: String
    let module: String
    let mayImport: Set<String>
  }

  static let core: Set<String> = ["PurchasesCore", "PurchasesContracts"]
  static let computation: Set<String> = ["PurchasesJSON", "PurchasesCryptography"]
  /// What Swift and the system bring; Foundation only where a room may touch the outside world.
  static let language: Set<String> = ["Swift", "Synchronization"]
  static let system: Set<String> = ["Glibc", "Dispatch"]
  static let foundation: Set<String> = ["Foundation", "FoundationEssentials", "FoundationNetworking"]

  static let rooms: [Room] = [
    Room(folder: "Computation/JSON", module: "PurchasesJSON", mayImport: ["CPurchasesJSON", "Glibc"]),
    Room(
      folder: "Computation/Cryptography", module: "PurchasesCryptography", mayImport: ["CPurchasesCrypto", "Glibc"]),
    Room(folder: "Connections/Kafka", module: "PurchasesKafka", mayImport: system.union(["CPurchasesKafka"])),
    Room(folder: "Connections/SQLite", module: "PurchasesSQLite", mayImport: system.union(["CPurchasesSQLite"])),
    Room(folder: "Connections/Postgres", module: "PurchasesPostgres", mayImport: system.union(["CPurchasesPostgres"])),
    Room(
      folder: "Connections/HTTPServer", module: "PurchasesHTTPServer", mayImport: system.union(["CPurchasesHTTPServer"])
    ),
    Room(folder: "Connections/HTTPClient", module: "PurchasesHTTPClient", mayImport: system.union(["CPurchasesCurl"])),
    Room(folder: "Core/Purchases", module: "PurchasesCore", mayImport: []),
    Room(folder: "Core/Contracts", module: "PurchasesContracts", mayImport: computation.union(["PurchasesCore"])),
    Room(folder: "Stages/Verification", module: "PurchasesVerification", mayImport: core.union(computation)),
    Room(folder: "Stages/Ownership", module: "PurchasesOwnership", mayImport: core.union(computation)),
    Room(folder: "Stages/Entitlements", module: "PurchasesEntitlements", mayImport: core.union(computation)),
    Room(folder: "Stages/Auditing", module: "PurchasesAuditing", mayImport: core.union(computation)),
    adapter("KafkaLog", ["PurchasesKafka"]),
    adapter("EmbeddedLog", ["PurchasesSQLite"]),
    adapter("SQLiteStore", ["PurchasesSQLite"]),
    adapter("PostgresStore", ["PurchasesPostgres"]),
    adapter("Gateway", ["PurchasesHTTPServer"]),
    adapter("AppStoreClient", ["PurchasesHTTPClient"]),
    Room(folder: "Runner", module: "PurchasesRunner", mayImport: core.union(system).union(foundation)),
    Room(
      folder: "LocalAppStore", module: "PurchasesLocalAppStore",
      mayImport: core.union(computation).union(system).union(foundation).union([
        "PurchasesHTTPServer", "PurchasesHTTPClient",
      ])),
    Room(
      folder: "Producer", module: "PurchasesProducer",
      mayImport: core.union(system).union(["PurchasesKafkaLog", "PurchasesEmbeddedLog"])),
    Room(
      folder: "Programs/Assembly", module: "PurchasesAssembly",
      mayImport: everything.union(system).union(foundation)),
    Room(
      folder: "Programs/Command", module: "PurchasesCommand",
      mayImport: everything.union(["PurchasesAssembly"]).union(system).union(foundation)),
  ]

  static func adapter(_ name: String, _ connection: Set<String>) -> Room {
    Room(
      folder: "Adapters/\(name)", module: "Purchases\(name)",
      mayImport: core.union(computation).union(system).union(connection))
  }

  /// All modules but the doors: C ends in one folder.
  static let everything: Set<String> = [
    "PurchasesJSON", "PurchasesCryptography", "PurchasesKafka", "PurchasesSQLite", "PurchasesPostgres",
    "PurchasesHTTPServer", "PurchasesHTTPClient", "PurchasesCore", "PurchasesContracts", "PurchasesVerification",
    "PurchasesOwnership", "PurchasesEntitlements", "PurchasesAuditing", "PurchasesKafkaLog", "PurchasesEmbeddedLog",
    "PurchasesSQLiteStore", "PurchasesPostgresStore", "PurchasesGateway", "PurchasesAppStoreClient", "PurchasesRunner",
    "PurchasesLocalAppStore", "PurchasesProducer",
  ]

  static func files(in folder: String) throws -> [(path: String, text: String)] {
    let root = sources.appendingPathComponent(folder)
    let names = try #require(FileManager.default.enumerator(atPath: root.path)?.allObjects as? [String])
    return try names.filter { $0.hasSuffix(".swift") }.sorted().map {
      ("\(folder)/\($0)", try String(contentsOf: root.appendingPathComponent($0), encoding: .utf8))
    }
  }

  /// Modules that a file imports, however the import is written.
  static func imports(_ text: String) -> [String] {
    text.split(separator: "\n").compactMap { line in
      var words = line.split(separator: " ").map(String.init)
      while let first = words.first,
        first.hasPrefix("@") || ["public", "internal", "private", "package"].contains(first)
      {
        words.removeFirst()
      }
      guard words.first == "import", words.count >= 2 else { return nil }
      let kinds = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
      let name = kinds.contains(words[1]) && words.count > 2 ? words[2] : words[1]
      return String(name.split(separator: ".")[0])
    }
  }

  @Test(arguments: rooms.map(\.module))
  func importsOnlyWhatItsRoomMay(module: String) throws {
    let room = try #require(Self.rooms.first { $0.module == module })
    let files = try Self.files(in: room.folder)
    #expect(!files.isEmpty, "\(room.folder) holds no Swift file")
    for file in files {
      for name in Self.imports(file.text) {
        #expect(
          room.mayImport.contains(name) || Self.language.contains(name),
          "\(file.path) imports \(name), which \(module) may not")
      }
    }
  }

  @Test func everyFolderIsARoom() throws {
    let manager = FileManager.default
    let known = Set(Self.rooms.map(\.folder))
    for top in try manager.contentsOfDirectory(atPath: Self.sources.path) where top != "Doors" {
      if known.contains(top) { continue }
      for inner in try manager.contentsOfDirectory(atPath: Self.sources.appendingPathComponent(top).path) {
        #expect(known.contains("\(top)/\(inner)"), "Sources/\(top)/\(inner) is no room of the table")
      }
    }
  }

  @Test func doorsHoldNoLogic() throws {
    let root = Self.sources.appendingPathComponent("Doors")
    for door in try FileManager.default.contentsOfDirectory(atPath: root.path) {
      let names = try FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent(door).path)
      #expect(Set(names) == ["module.modulemap", "shim.h"], "Doors/\(door) holds a module map and a shim")
    }
  }

  @Test func noPointerIsVisibleOutsideARoom() throws {
    let pointers = [
      "UnsafePointer", "UnsafeMutablePointer", "OpaquePointer", "UnsafeRawPointer", "UnsafeMutableRawPointer",
    ]
    for room in Self.rooms {
      for file in try Self.files(in: room.folder) {
        for declaration in Self.publicDeclarations(file.text) {
          for pointer in pointers {
            #expect(!declaration.contains(pointer), "\(file.path) shows a pointer: \(declaration)")
          }
        }
      }
    }
  }

  /// Public declarations up to their body, put on one line.
  static func publicDeclarations(_ text: String) -> [String] {
    var found: [String] = []
    var current: String?
    for raw in text.split(separator: "\n") {
      let line = raw.trimmingCharacters(in: .whitespaces)
      if current == nil {
        let isPublic =
          line.hasPrefix("public ") || line.hasPrefix("open ") || (line.hasPrefix("@") && line.contains(" public "))
        if isPublic { current = "" }
      }
      guard let begun = current else { continue }
      let whole = begun + " " + line
      if line.hasSuffix("{") || line.contains(" { ") || line.contains(" = ")
        || balance(whole) == 0 && !line.hasSuffix(",")
      {
        found.append(whole)
        current = nil
      } else {
        current = whole
      }
    }
    return found
  }

  private static func balance(_ text: String) -> Int {
    text.reduce(0) { $0 + ($1 == "(" ? 1 : $1 == ")" ? -1 : 0) }
  }

  @Test func theCheckSeesWhatItIsFor() {
    #expect(
      Self.imports("@testable import PurchasesCore\nimport struct Foundation.Data\nlet x = 1") == [
        "PurchasesCore", "Foundation",
      ])
    #expect(
      Self.publicDeclarations("  public func a(\n    b: Int,\n    c: OpaquePointer\n  ) -> Int {\n").first?.contains(
        "OpaquePointer") == true)
    #expect(
      Self.publicDeclarations("  public var raw: UnsafeMutablePointer<Int>?\n").first?.contains("UnsafeMutablePointer")
        == true)
  }
}
