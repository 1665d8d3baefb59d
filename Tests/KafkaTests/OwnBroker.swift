import Foundation
import Glibc

/// Brokers of a test's own, started through the script that a person would use. Whoever starts them stops them.
struct OwnBroker: Sendable {
  static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Scripts/kafka").path

  static func freshFolder() -> String {
    FileManager.default.temporaryDirectory.appendingPathComponent(Broker.fresh("kafka")).path
  }

  let folder: String
  private(set) var servers: String

  /// - Parameter advertised: ports that clients are sent to in place of the brokers' own.
  init(in folder: String = Self.freshFolder(), brokers: Int = 1, advertised: [UInt16] = []) throws {
    self.folder = folder
    servers = ""
    do {
      let advertise = advertised.isEmpty ? [] : ["--advertise", advertised.map(String.init).joined(separator: ",")]
      try run(words: [Self.script, "start", folder, "--brokers", String(brokers)] + advertise)
      servers = try String(contentsOfFile: folder + "/bootstrap", encoding: .utf8)
        .trimmingCharacters(in: .whitespacesAndNewlines)
    } catch {
      stop()
      throw error
    }
  }

  /// The brokers' own ports, as soon as the script has chosen them.
  static func ports(in folder: String) -> [UInt16] {
    let text = (try? String(contentsOfFile: folder + "/ports", encoding: .utf8)) ?? ""
    return text.split(separator: "\n").compactMap { UInt16($0) }
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
