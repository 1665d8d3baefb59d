import Glibc
import PurchasesCryptography
import PurchasesTestKit

/// Apple's test vectors, beside this file.
enum Fixtures {
  static func bytes(_ path: String) throws -> [UInt8] {
    let folder = #filePath.split(separator: "/").dropLast().joined(separator: "/")
    guard let file = fopen("/" + folder + "/Fixtures/" + path, "rb") else { throw Missing(path: path) }
    defer { fclose(file) }
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = fread(&buffer, 1, buffer.count, file)
      if count == 0 { return result }
      result += buffer.prefix(count)
    }
  }

  static func certificate(_ name: String) throws -> [UInt8] { try bytes("certs/\(name).der") }

  static func jws(_ name: String) throws -> [UInt8] {
    try bytes("jws/\(name).jws").filter { $0 > 0x20 }
  }

  struct Missing: Error { let path: String }
}

extension SeededRandom {
  mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}

/// Milliseconds since 1970 of midnight UTC.
func midnight(_ year: Int, _ month: Int, _ day: Int) -> Int64 {
  var parts = tm()
  parts.tm_year = Int32(year - 1900)
  parts.tm_mon = Int32(month - 1)
  parts.tm_mday = Int32(day)
  return Int64(timegm(&parts)) * 1000
}

let hour: Int64 = 3_600_000
