import Foundation
import PurchasesAppStoreClient
import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesHTTPServer
import PurchasesLocalAppStore
import PurchasesTestKit
import Synchronization

/// Apple's servers on two ports with real TLS, and clients that trust them. Time is turned by hand, and by who waits.
final class AppleFixture {
  static let secret = "canary-shared-secret-0123456789"

  let clock = ManualClock()
  let authority = LocalAuthority(seed: 11)
  let books: AppleBooks
  let servers: AppleServers
  let folder: URL
  let alarms = AlarmList()
  let waits = WaitList()

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "purchases-apple-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let (certificate, key) = authority.tls
    try Data(certificate.utf8).write(to: folder.appending(path: "cert.pem"))
    try Data(key.utf8).write(to: folder.appending(path: "key.pem"))
    books = AppleBooks(authority)
    let http = HTTPServer.Settings(
      tls: .init(
        certificatePath: folder.appending(path: "cert.pem").path, keyPath: folder.appending(path: "key.pem").path))
    servers = try AppleServers(
      books, settings: .init(production: http, sandbox: http, secret: Self.secret), clock: clock)
  }

  deinit {
    servers.stop(within: 5)
    try? FileManager.default.removeItem(at: folder)
  }

  var caFile: String { folder.appending(path: "cert.pem").path }

  func host(_ environment: PurchasesCore.Environment) throws -> AppleHost {
    try AppleHost("https://127.0.0.1:\(servers.port(environment))")
  }

  func receipts(
    first: AppleSide = .production, secret: String? = AppleFixture.secret, failures: Int = 5, seconds: Double = 20
  ) throws -> ReceiptClient {
    let waits = waits
    let clock = clock
    return ReceiptClient(
      .init(
        hosts: BothSides(production: try host(.production), sandbox: try host(.sandbox)), first: first,
        secret: secret.map(Secret.init), totalSeconds: seconds, caFile: caFile,
        breaker: .init(failures: failures, firstPause: 1_000, longestPause: 8_000)),
      clock: clock,
      pause: { milliseconds in
        waits.add(milliseconds)
        clock.advance(milliseconds: milliseconds)
      }, alarms: alarms.add)
  }

  func api(
    _ side: AppleSide = .production, attempts: Int = 3, longestWait: Int64 = 60_000, failures: Int = 5,
    key: APIKey? = nil, seconds: Double = 20
  ) throws -> ServerAPI {
    let key = try key ?? self.key()
    let clock = clock
    let waits = waits
    return ServerAPI(
      .init(
        side: side, host: try host(side.environment), attempts: attempts, longestWait: longestWait,
        totalSeconds: seconds, caFile: caFile,
        breaker: .init(failures: failures, firstPause: 1_000, longestPause: 8_000)),
      key: key, clock: clock, governor: RateGovernor(side),
      pause: { milliseconds in
        waits.add(milliseconds)
        clock.advance(milliseconds: milliseconds)
      }, alarms: alarms.add)
  }

  func key(
    issuer: String = APICredentials.issuerID, id: String = APICredentials.keyID, p8: String? = nil
  ) throws -> APIKey {
    try APIKey(issuerID: issuer, keyID: id, bundleID: "com.example.app", p8: p8 ?? servers.credentials.p8)
  }

  func transaction(_ id: String, original: String? = nil, at: Int64? = nil, extra: String = "") -> [UInt8] {
    let date = at ?? clock.now().milliseconds
    return Array(
      (#"{"transactionId":"\#(id)","originalTransactionId":"\#(original ?? id)","bundleId":"com.example.app","#
        + #""productId":"coins.100","type":"Consumable","purchaseDate":\#(date),"signedDate":\#(date),"#
        + #""environment":"Production","appTransactionId":"7001"\#(extra)}"#).utf8)
  }

  /// A notification of that day, with its number in it.
  func notification(_ number: Int, environment: String = "Production") -> [UInt8] {
    let uuid = String(format: "00000000-0000-4000-8000-%012d", number)
    return Array(
      (#"{"notificationType":"TEST","notificationUUID":"\#(uuid)","version":"2.0","signedDate":\#(clock.now().milliseconds),"#
        + #""data":{"bundleId":"com.example.app","environment":"\#(environment)"}}"#).utf8)
  }
}

final class AlarmList: Sendable {
  private let all = Mutex<[StoreAlarm]>([])
  var add: StoreAlarms { { alarm in self.all.withLock { $0.append(alarm) } } }
  var kinds: [StoreAlarm.Kind] { all.withLock { $0.map(\.kind) } }
  var text: String { all.withLock { $0.map(\.description).joined(separator: "\n") } }
}

final class WaitList: Sendable {
  private let all = Mutex<[Int64]>([])
  func add(_ milliseconds: Int64) { if milliseconds > 0 { all.withLock { $0.append(milliseconds) } } }
  var milliseconds: [Int64] { all.withLock { $0 } }
}
