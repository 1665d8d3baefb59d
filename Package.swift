// swift-tools-version: 6.0
import PackageDescription

// The rooms of ARCHITECTURE.md, top to bottom. Folders keep the short names; modules carry a prefix, because a package
// that depends on this one cannot have a module of the same name. Tests/RoomTests holds this file to the table of edges.

let doors = "Sources/Doors/"
let core: [Target.Dependency] = ["PurchasesCore", "PurchasesContracts"]
let computation: [Target.Dependency] = ["PurchasesJSON", "PurchasesCryptography"]

func door(_ name: String, _ folder: String) -> Target {
  .systemLibrary(name: name, path: doors + folder)
}

func room(_ name: String, _ path: String, _ dependencies: [Target.Dependency]) -> Target {
  .target(name: name, dependencies: dependencies, path: "Sources/" + path)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], fixtures: Bool = false) -> Target {
  .testTarget(
    name: name + "Tests", dependencies: dependencies + ["PurchasesTestKit"], path: "Tests/" + name + "Tests",
    exclude: fixtures ? ["Fixtures"] : [])
}

let package = Package(
  name: "purchases",
  products: [
    .executable(name: "purchases", targets: ["PurchasesCommand"]),
    .library(name: "PurchasesProducer", targets: ["PurchasesProducer"]),
  ],
  targets: [
    door("CPurchasesCrypto", "Crypto"),
    door("CPurchasesCurl", "Curl"),
    door("CPurchasesHTTPServer", "HTTPServer"),
    door("CPurchasesJSON", "JSON"),
    door("CPurchasesKafka", "Kafka"),
    door("CPurchasesPostgres", "Postgres"),
    door("CPurchasesSQLite", "SQLite"),

    room("PurchasesJSON", "Computation/JSON", ["CPurchasesJSON"]),
    .target(
      name: "PurchasesCryptography", dependencies: ["CPurchasesCrypto"], path: "Sources/Computation/Cryptography",
      resources: [.embedInCode("Anchors")]),

    room("PurchasesKafka", "Connections/Kafka", ["CPurchasesKafka"]),
    room("PurchasesSQLite", "Connections/SQLite", ["CPurchasesSQLite"]),
    room("PurchasesPostgres", "Connections/Postgres", ["CPurchasesPostgres"]),
    room("PurchasesHTTPServer", "Connections/HTTPServer", ["CPurchasesHTTPServer"]),
    room("PurchasesHTTPClient", "Connections/HTTPClient", ["CPurchasesCurl"]),

    room("PurchasesCore", "Core/Purchases", []),
    room("PurchasesContracts", "Core/Contracts", ["PurchasesCore"] + computation),

    room("PurchasesVerification", "Stages/Verification", core + computation),
    room("PurchasesOwnership", "Stages/Ownership", core + computation),
    room("PurchasesEntitlements", "Stages/Entitlements", core + computation),
    room("PurchasesAuditing", "Stages/Auditing", core + computation),

    room("PurchasesKafkaLog", "Adapters/KafkaLog", core + ["PurchasesKafka"]),
    room("PurchasesEmbeddedLog", "Adapters/EmbeddedLog", core + ["PurchasesSQLite"]),
    room("PurchasesSQLiteStore", "Adapters/SQLiteStore", core + ["PurchasesSQLite"]),
    room("PurchasesPostgresStore", "Adapters/PostgresStore", core + ["PurchasesPostgres"]),
    room("PurchasesGateway", "Adapters/Gateway", core + computation + ["PurchasesHTTPServer"]),
    room("PurchasesAppStoreClient", "Adapters/AppStoreClient", core + computation + ["PurchasesHTTPClient"]),

    room("PurchasesRunner", "Runner", core),
    room(
      "PurchasesLocalAppStore", "LocalAppStore",
      core + computation + ["PurchasesHTTPServer", "PurchasesHTTPClient"]),
    room("PurchasesProducer", "Producer", core + ["PurchasesKafkaLog", "PurchasesEmbeddedLog"]),

    room(
      "PurchasesAssembly", "Programs/Assembly",
      core + computation + [
        "PurchasesVerification", "PurchasesOwnership", "PurchasesEntitlements", "PurchasesAuditing",
        "PurchasesKafkaLog",
        "PurchasesEmbeddedLog", "PurchasesSQLiteStore", "PurchasesPostgresStore", "PurchasesGateway",
        "PurchasesAppStoreClient", "PurchasesRunner", "PurchasesLocalAppStore", "PurchasesProducer",
        "PurchasesHTTPServer", "PurchasesHTTPClient",
      ]),
    .executableTarget(
      name: "PurchasesCommand", dependencies: core + computation + ["PurchasesAssembly"],
      path: "Sources/Programs/Command"),

    .target(
      name: "PurchasesTestKit",
      dependencies: core + computation + [
        "PurchasesOwnership", "PurchasesEntitlements", "PurchasesRunner", "PurchasesLocalAppStore",
        "PurchasesHTTPClient",
      ],
      path: "Tests/TestKit"),
    tests("JSON", ["PurchasesJSON"]),
    tests("Cryptography", ["PurchasesCryptography"], fixtures: true),
    tests("Kafka", ["PurchasesKafka", "PurchasesKafkaLog"]),
    tests("SQLite", ["PurchasesSQLite"]),
    tests("Postgres", ["PurchasesPostgres"]),
    tests("HTTP", ["PurchasesHTTPServer", "PurchasesHTTPClient"]),
    tests("Core", core),
    tests("Contracts", core + computation),
    tests("Verification", core + computation + ["PurchasesVerification"], fixtures: true),
    tests("Ownership", core + computation + ["PurchasesOwnership"]),
    tests("Entitlements", core + computation + ["PurchasesEntitlements", "PurchasesOwnership"]),
    tests("Auditing", core + computation + ["PurchasesAuditing"]),
    // A program for tests to kill and stop; it is no product and nothing ships it.
    .executableTarget(
      name: "PurchasesLogWriter", dependencies: core + ["PurchasesEmbeddedLog"], path: "Tests/Support/LogWriter"),
    tests("EmbeddedLog", core + ["PurchasesEmbeddedLog", "PurchasesSQLite", "PurchasesLogWriter"]),
    .executableTarget(
      name: "PurchasesStoreWriter", dependencies: core + ["PurchasesSQLiteStore", "PurchasesPostgresStore"],
      path: "Tests/Support/StoreWriter"),
    // Random histories and what the stages say of them, for the judges in Python; no product, nothing ships it.
    .executableTarget(
      name: "PurchasesHistories", dependencies: core + ["PurchasesTestKit"], path: "Tests/Support/Histories"),
    tests("SQLiteStore", core + ["PurchasesSQLiteStore", "PurchasesSQLite", "PurchasesStoreWriter"]),
    tests("PostgresStore", core + ["PurchasesPostgresStore", "PurchasesPostgres", "PurchasesStoreWriter"]),
    tests(
      "Gateway",
      core + computation + [
        "PurchasesGateway", "PurchasesHTTPServer", "PurchasesHTTPClient", "PurchasesEmbeddedLog",
        "PurchasesSQLiteStore",
      ]),
    tests(
      "AppStoreClient",
      core + computation + ["PurchasesAppStoreClient", "PurchasesHTTPServer", "PurchasesLocalAppStore"]),
    tests("Runner", core + ["PurchasesRunner", "PurchasesEmbeddedLog", "PurchasesSQLiteStore"]),
    tests(
      "LocalAppStore",
      core + computation + [
        "PurchasesLocalAppStore", "PurchasesVerification", "PurchasesHTTPServer", "PurchasesHTTPClient",
      ]),
    tests("Producer", core + ["PurchasesProducer", "PurchasesEmbeddedLog"]),
    tests(
      "Programs",
      core + computation + [
        "PurchasesAssembly", "PurchasesRunner", "PurchasesAppStoreClient", "PurchasesLocalAppStore",
        "PurchasesHTTPServer", "PurchasesHTTPClient", "PurchasesEmbeddedLog",
      ]),
    tests("Room", []),
    // Measures, beside plain loops in C; no product, nothing ships it.
    .executableTarget(
      name: "PurchasesBench",
      dependencies: core + computation + [
        "PurchasesVerification", "PurchasesOwnership", "PurchasesEntitlements", "PurchasesAuditing",
        "PurchasesKafkaLog",
        "PurchasesEmbeddedLog", "PurchasesSQLiteStore", "PurchasesPostgresStore", "PurchasesRunner",
        "PurchasesLocalAppStore", "PurchasesKafka", "PurchasesSQLite", "PurchasesPostgres",
        "PurchasesHTTPClient",
      ],
      path: "Tests/Bench/Program"),
  ],
  swiftLanguageModes: [.v6]
)
