import Foundation
import PurchasesContracts
import PurchasesCore
import PurchasesHTTPClient
import PurchasesKafkaLog
import PurchasesLocalAppStore
import PurchasesRunner

/// The released program as a deployment runs it, `purchases run` on Kafka and a SQLite store, in a process of its own.
final class LiveService {
  let gateway: String
  let topics: TopicSettings
  let log: KafkaLog
  private let process: Process
  private let files: String
  let http = HTTPClient(HTTPClient.Settings(maxIdleHandles: 512))

  private static let readySeconds = 60.0
  private static let stopSeconds = 30.0

  init(_ name: String, program: String, brokers: String, folder: String, authority: LocalAuthority) throws {
    // A broker that runs on between two runs has the earlier one's offsets still, which belong to a store that is gone.
    let group = "\(name)-\(getpid())"
    topics = TopicSettings(prefix: group + ".")
    files = "\(folder)/\(group)"
    try FileManager.default.createDirectory(atPath: files, withIntermediateDirectories: true)
    try File.write(authority.root.der, to: files + "/root.der")
    try File.write(DemoCatalogue.json, to: files + "/catalogue.json")
    let port = try Self.freePort()
    gateway = "http://127.0.0.1:\(port)"
    log = try KafkaLog(url: "kafka://\(brokers)")
    process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = [
      "run", "--log", "kafka://\(brokers)", "--store", "sqlite:\(files)/store.db", "--prefix", topics.prefix,
      "--group", group, "--catalogue", files + "/catalogue.json", "--bundle-id", DemoCatalogue.bundleID,
      "--app-apple-id", String(DemoCatalogue.appAppleID), "--anchor", files + "/root.der", "--revocation", "off",
      "--listen", "127.0.0.1:\(port)",
    ]
    try File.write([], to: files + "/log")
    process.standardError = FileHandle(forWritingAtPath: files + "/log")
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    let deadline = Gauge.now + Self.readySeconds
    while (try? http.send(HTTPCall("GET", gateway + "/readyz")).status) != 200 {
      guard process.isRunning, Gauge.now < deadline else {
        stop()
        throw BenchFailure("`purchases run` does not get ready; it says: \(File.text(files + "/log") ?? "")")
      }
      usleep(50_000)
    }
  }

  /// Nobody else listens there now; the port is taken a moment later.
  private static func freePort() throws -> UInt16 {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { Glibc.close(socket) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(socket, pointer, size) == 0 ? getsockname(socket, pointer, &size) : -1
      }
    }
    guard result == 0 else { throw BenchFailure("no free port") }
    return UInt16(bigEndian: address.sin_port)
  }

  /// Answers whether it was accepted: 202.
  func post(_ report: SyntheticPurchases.Report) -> Bool {
    let call = HTTPCall(
      "POST", gateway + "/v1/events", headers: [("content-type", "application/json")], body: report.body)
    return (try? http.send(call).status) == 202
  }

  /// Many at once; answers how many were accepted.
  func post(_ reports: some Sequence<SyntheticPurchases.Report>) throws -> Int {
    var body: [UInt8] = []
    var count = 0
    for report in reports {
      body += report.body
      body.append(UInt8(ascii: "\n"))
      count += 1
    }
    let call = HTTPCall(
      "POST", gateway + "/v1/events", headers: [("content-type", "application/x-ndjson")], body: body)
    let answer = try http.send(call)
    guard answer.status == 202 else {
      throw BenchFailure(
        "a body of \(count) events was answered \(answer.status): \(String(decoding: answer.body.prefix(300), as: UTF8.self))"
      )
    }
    return count
  }

  /// Waits for the permit as a back end does; answers whether it came.
  func permit(_ report: SyntheticPurchases.Report) -> Bool {
    let path = "/v1/permits/\(Environment.production.rawValue)/\(report.account)/\(report.proof)?wait=20"
    guard let answer = try? http.send(HTTPCall("GET", gateway + path)), answer.status == 200 else { return false }
    return String(decoding: answer.body, as: UTF8.self).contains(#""finishable""#)
  }

  /// Ends the program in order and takes its files away.
  func stop() {
    log.close()
    if process.isRunning {
      process.terminate()
      let deadline = Gauge.now + Self.stopSeconds
      while process.isRunning, Gauge.now < deadline { usleep(20_000) }
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
    process.waitUntilExit()
    try? FileManager.default.removeItem(atPath: files)
  }
}
