/// What `openssl speed` says that this machine can do.
enum OpenSSLSpeed {
  /// Verifications per second with ECDSA, by the name of the curve. By processor time unless `isElapsed`; two or more
  /// processes at once with `processes`.
  static func verifications(
    _ curves: [String], seconds: Int, processes: Int = 1, isElapsed: Bool = false
  ) throws -> [String: Double] {
    var words = ["openssl", "speed", "-seconds", "\(seconds)"]
    if isElapsed { words.append("-elapsed") }
    if processes > 1 { words += ["-multi", "\(processes)"] }
    let output = try Child("/usr/bin/env", words + curves.map { "ecdsap\($0)" }, isQuiet: true).output()
    var rates: [String: Double] = [:]
    // " 256 bits ecdsa (nistp256)   0.0000s   0.0001s  40000.0  12000.0"
    for curve in curves {
      for line in output.split(separator: "\n") where line.contains("(nistp\(curve))") {
        rates[curve] = line.split(separator: " ").last.flatMap { Double($0) }
      }
      guard let rate = rates[curve], rate > 0 else {
        throw BenchFailure("openssl speed printed no rate for P-\(curve)")
      }
    }
    return rates
  }
}
