import Foundation
import Glibc

/// Brokers of a test's own, started through the script that a person would use. Whoever starts them stops them.
struct OwnBroker: Sendable {
  static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Scripts/kafka").path

  let folder: String
  private(set) var servers: String

  init(brokers: Int = 1) throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent(Broker.fresh("kafka")).path
    servers = ""
    do {
      try run(Self.script, "start", folder, "--brokers", String(brokers))
      servers = try String(contentsOfFile: folder + "/bootstrap", encoding: .utf8)
        .trimmingCharacters(in: .whitespacesAndNewlines)
    } catch {
      stop()
      throw error
    }
  }

  func stop() {
    _ = try? run(Self.script, "stop", folder)
    try? FileManager.default.removeItem(atPath: folder)
  }

  func signal(_ signal: Int32, broker: Int = 1) throws {
    let text = try String(contentsOfFile: folder + "/pid\(broker)", encoding: .utf8)
    guard let process = pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines)), kill(process, signal) == 0 else {
      throw ProgramFailed(description: "the broker of \(folder) can't be sent signal \(signal)")
    }
  }
}
