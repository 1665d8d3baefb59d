import Glibc

/// What one measured run came to. Children print it as a line, the same as `raw_loop.c` does.
struct Sample {
  var count: Int
  var seconds: Double
  /// Processor time within, all threads of the process.
  var cpu: Double
  var memory: Memory?
  /// KiB that the process had resident at most, mapped files included; nil where nobody asked.
  var peak: Int?

  /// KiB of the process's own memory (file pages not counted).
  struct Memory {
    /// After a fifth of the work.
    let early: Int
    /// The most that was seen from there on.
    let most: Int
    /// At the end.
    let end: Int
  }

  /// Work per second.
  var rate: Double { Double(count) / seconds }
  var cpuRate: Double { cpu > 0 ? Double(count) / cpu : 0 }

  init(count: Int, seconds: Double, cpu: Double, memory: Memory? = nil) {
    self.count = count
    self.seconds = seconds
    self.cpu = cpu
    self.memory = memory
  }

  /// What was only told as a rate.
  init(rate: Double) { self.init(count: 1_000_000, seconds: 1_000_000 / rate, cpu: 1_000_000 / rate) }

  init?(line: some StringProtocol) {
    let words = line.split(separator: " ")
    guard words.count >= 4, words[0] == "sample", let count = Int(words[1]), let seconds = Double(words[2]),
      let cpu = Double(words[3])
    else { return nil }
    self.init(count: count, seconds: seconds, cpu: cpu)
    if words.count >= 7, let early = Int(words[4]), let most = Int(words[5]), let end = Int(words[6]) {
      memory = Memory(early: early, most: most, end: end)
    }
    if words.count == 8 { peak = Int(words[7]) }
  }

  var line: String {
    "sample \(count) \(seconds) \(cpu)"
      + (memory.map { memory in
        " \(memory.early) \(memory.most) \(memory.end)" + (peak.map { " \($0)" } ?? "")
      } ?? "")
  }

  /// Has `work` done, which answers how much it did, until so many seconds of processor time have passed.
  static func `while`(_ seconds: Double, _ work: (Int) throws -> Int) rethrows -> Sample {
    let (began, begin) = (Gauge.now, Gauge.cpu)
    var count = 0
    while Gauge.cpu - begin < seconds { count += try work(count) }
    return Sample(count: count, seconds: Gauge.now - began, cpu: Gauge.cpu - begin)
  }

  /// The same work by processor time, for what others count so.
  var byCPU: Sample { Sample(count: count, seconds: cpu, cpu: cpu, memory: memory) }
}

/// How the process's memory stands on the way.
struct MemoryWatch {
  private var early: Int?
  private var most = 0
  private var end = 0

  /// - Parameter isWarm: whether a fifth of the work is done. The first look then is what later ones are held against.
  mutating func look(isWarm: Bool) {
    end = Gauge.memory
    guard isWarm else { return }
    early = early ?? end
    most = max(most, end)
  }

  var memory: Sample.Memory { Sample.Memory(early: early ?? end, most: max(most, end), end: end) }
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
  static var memory: Int { status("RssAnon:") }

  /// The most KiB that were resident at any time, mapped files included.
  static var peak: Int { status("VmHWM:") }

  private static func status(_ name: String) -> Int {
    guard let status = File.text("/proc/self/status") else { return 0 }
    for line in status.split(separator: "\n") where line.hasPrefix(name) {
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
