import Glibc

/// What one measured run came to. Children print it as a line, the same as `raw_loop.c` does.
struct Sample {
  var count: Int
  var seconds: Double
  /// Processor time within, all threads of the process.
  var cpu: Double
  /// KiB of the process's own memory (file pages not counted), after a fifth of the work and at its end.
  var memory: (early: Int, end: Int)?

  /// Work per second.
  var rate: Double { Double(count) / seconds }
  var cpuRate: Double { cpu > 0 ? Double(count) / cpu : 0 }

  init(count: Int, seconds: Double, cpu: Double, memory: (early: Int, end: Int)? = nil) {
    self.count = count
    self.seconds = seconds
    self.cpu = cpu
    self.memory = memory
  }

  init?(line: some StringProtocol) {
    let words = line.split(separator: " ")
    guard words.count >= 4, words[0] == "sample", let count = Int(words[1]), let seconds = Double(words[2]),
      let cpu = Double(words[3])
    else { return nil }
    self.init(count: count, seconds: seconds, cpu: cpu)
    if words.count == 6, let early = Int(words[4]), let end = Int(words[5]) { memory = (early, end) }
  }

  var line: String {
    "sample \(count) \(seconds) \(cpu)" + (memory.map { " \($0.early) \($0.end)" } ?? "")
  }
}

/// The clocks and gauges of this process.
enum Gauge {
  /// Seconds of the clock that never jumps.
  static var now: Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }

  static var cpu: Double {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
      + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6
  }

  /// KiB of resident memory that is the process's own: pages of mapped files are the system's to take back.
  static var memory: Int {
    guard let status = File.text("/proc/self/status") else { return 0 }
    for line in status.split(separator: "\n") where line.hasPrefix("RssAnon:") {
      return line.split(separator: " ").compactMap { Int($0) }.first ?? 0
    }
    return 0
  }

  static var load: String {
    File.text("/proc/loadavg").map { $0.split(separator: " ").prefix(1).joined() } ?? "unknown"
  }
}

/// Says why a measurement could not be made.
struct BenchFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
