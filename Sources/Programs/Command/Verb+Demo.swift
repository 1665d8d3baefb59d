import PurchasesAssembly
import PurchasesRunner

extension Setting {
  static let seed = Setting("seed", "N", "the same seed gives the same day (default 1)")
  static let accounts = Setting("accounts", "N", "how many users take part (default 3000)")
  static let keep = Setting("keep", "DIR", "keep log, store, catalogue, root and audit key in this folder")
}

extension Verb {
  static let demo = Verb(
    words: ["demo"], summary: "Play a day of a local App Store through the whole pipeline, and prove the outcome",
    settings: [.seed, .accounts, .keep]
      + Setting.connection.map { setting in
        switch setting {
        case .log:
          setting.explained("the log: sqlite:PATH or kafka://HOST:PORT,HOST:PORT (default: a file that goes away)")
        case .store: setting.explained("the store: sqlite:PATH or postgres://… (default: a file that goes away)")
        case .prefix: setting.explained("what topic names begin with (default: on Kafka a name of its own)")
        case .group: setting.explained("what consumer group names begin with (default: on Kafka a name of its own)")
        default: setting
        }
      },
    examples: [
      "purchases demo", "purchases demo --seed 7 --accounts 500 --keep day",
      "purchases demo --log kafka://localhost:9092",
    ],
    statuses: [(1, "something could not go on"), (ExitStatus.found, "the replay or the audit log does not hold")]
  ) { call in
    let stop = StopSignal()
    Signals.stop(stop)
    let settings = Demo.Settings(
      seed: try call.values.number(.seed, 0...UInt64.max) ?? 1,
      accounts: try call.values.number(.accounts, 1...1_000_000) ?? 3000, keep: call.values.text(.keep))
    let outcome = try Demo(call.values, settings).run(until: stop) { Output.progress($0) }
    Output.endProgress()
    for line in outcome.lines { Output.line(line) }
    return outcome.holds ? 0 : ExitStatus.found
  }
}
