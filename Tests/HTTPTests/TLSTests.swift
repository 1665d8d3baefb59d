import Foundation
import PurchasesHTTPClient
import PurchasesHTTPServer
import Testing

private let openssl = ["/usr/bin/openssl", "/usr/local/bin/openssl"].first(where: FileManager.default.isExecutableFile)

@Suite(.enabled(if: openssl != nil, "the openssl program makes the certificate"), .timeLimit(.minutes(1)))
struct TLSTests {
  let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "purchases-tls-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: try #require(openssl))
    process.arguments = [
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path("key.pem"),
      "-out", path("cert.pem"), "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
    ]
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
  }

  private func path(_ name: String) -> String { folder.appending(path: name).path }

  @Test func trustedOnlyByTheConfiguredAuthority() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let server = try HTTPServer(
      .init(tls: .init(certificatePath: path("cert.pem"), keyPath: path("key.pem")))
    ) { HTTPResponse(status: 200, body: $0.body) }
    let url = "https://127.0.0.1:\(server.port)/"
    let trusting = HTTPClient(.init(caFile: path("cert.pem")))
    #expect(try trusting.send(HTTPCall("POST", url, body: [1, 2, 3])).body == [1, 2, 3])
    for (client, url) in [
      (HTTPClient(), url),
      // Right authority, wrong name.
      (trusting, "https://localhost:\(server.port)/"),
      (HTTPClient(.init(caFile: path("missing.pem"))), url),
    ] {
      do {
        _ = try client.send(HTTPCall("GET", url))
        Issue.record("an untrusted peer was believed")
      } catch {
        guard case .tls = error else {
          Issue.record("expected tls, got \(error)")
          continue
        }
      }
    }
    #expect(throws: HTTPServerError.self) {
      try HTTPServer(.init(tls: .init(certificatePath: path("key.pem"), keyPath: path("cert.pem")))) { _ in
        HTTPResponse(status: 200)
      }
    }
    #expect(server.stop(within: 5))
  }
}
