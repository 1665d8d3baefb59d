import Glibc
import PurchasesContracts
import PurchasesTestKit

/// Prints random histories and what the real stages say of them, for the model in `Tests/Judges`: the catalogue first, then
/// one history a line, in NDJSON.
///
///     PurchasesHistories SEED COUNT [FIRST]
///     PurchasesHistories play
///
/// The second form plays the histories that it reads, one a line, and answers each with a line.
///
/// History n of a seed is the same in every run, whatever COUNT: a difference is shown again by `SEED 1 N`.
@main struct HistoriesMain {
  static func main() throws {
    if CommandLine.arguments.dropFirst() == ["play"] { return try play() }
    let numbers = CommandLine.arguments.dropFirst().map { UInt64($0) }
    guard (2...3).contains(numbers.count), let seed = numbers[0], let count = numbers[1],
      let first = numbers.count == 3 ? numbers[2] : 0
    else {
      print("usage: PurchasesHistories SEED COUNT [FIRST] | play")
      exit(2)
    }
    say(RandomHistory.catalogue.json)
    for number in first..<first + count {
      say(RandomHistory(seed: seed &+ number &* 1_000_003).line(Int(number)))
    }
  }

  static func play() throws {
    while let line = readLine() {
      say(try RandomHistory(line: Array(line.utf8)).line(0))
    }
  }

  static func say(_ line: [UInt8]) {
    var bytes = (line + [10])[...]
    while !bytes.isEmpty {
      let written = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
      guard written > 0 else { exit(1) }
      bytes = bytes.dropFirst(written)
    }
  }
}
