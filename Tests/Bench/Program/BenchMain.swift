import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesJSON

/// `make bench`: the rows of docs/speed.md, each beside its limit in the same run. Never shipped.
@main struct BenchMain {
  static func main() {
    do {
      let words = Array(CommandLine.arguments.dropFirst())
      guard words.first == "child" else {
        let bench = try Bench(words)
        exit(try bench.run() ? 0 : 1)
      }
      print(try child(Array(words.dropFirst())).line)
    } catch {
      File.complain("bench: \(error)")
      exit(1)
    }
  }

  /// One measured run, in a process of its own.
  private static func child(_ words: [String]) throws -> Sample {
    switch (words.first, words.count) {
    case ("verify", 2):
      guard let seconds = Double(words[1]) else { throw BenchFailure("verify SECONDS") }
      return try VerificationRun().run(seconds: seconds)
    case ("cores", 3):
      guard let seconds = Double(words[2]) else { throw BenchFailure("cores one|all SECONDS") }
      return try CoresRun().run(seconds: seconds, onAll: words[1] == "all")
    case ("cold", 3):
      guard let curve = ColdChains.Curve(rawValue: words[1]), let seconds = Double(words[2]) else {
        throw BenchFailure("cold p256|p384 SECONDS")
      }
      return try ColdChains(curve).run(seconds: seconds)
    case ("verify-many", 2):
      guard let count = Int(words[1]) else { throw BenchFailure("verify-many COUNT") }
      return try VerificationRun().run(count: count)
    case ("stage", 6), ("stage", 7):
      guard let name = StageName(rawValue: words[1]) else { throw BenchFailure("no stage \(words[1])") }
      var run = StageRun(
        name: name, brokers: words[2], store: words[3].isEmpty ? nil : words[3], scratch: words[4], group: words[5])
      if words.count == 7 { run.topics.prefix = words[6] }
      return try run.run()
    case ("fill", 3):
      guard let count = Int(words[2]), count > 0 else { throw BenchFailure("fill PATH ACCOUNTS") }
      return try LargeStore(path: words[1], accounts: LargeAccounts(count: count)).fill()
    case ("slices", 5):
      guard let accounts = Int(words[2]), let size = Int(words[3]), let count = Int(words[4]), accounts > 0, count > 0
      else { throw BenchFailure("slices BROKERS ACCOUNTS SIZE COUNT") }
      return try LargeSlices(accounts: LargeAccounts(count: accounts), size: size).publish(count, brokers: words[1])
    case ("append", 3), ("plain", 3):
      guard let count = Int(words[2]) else { throw BenchFailure("append|plain PATH COUNT") }
      let run = AppendRun(path: words[1], count: count)
      return words[0] == "append" ? try run.embedded() : try run.plain()
    default: throw BenchFailure("unknown child \(words.joined(separator: " "))")
    }
  }
}
