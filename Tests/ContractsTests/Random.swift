/// SplitMix64: a seed is the whole test.
struct Random: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }

  mutating func bytes(upTo count: Int) -> [UInt8] {
    (0..<Int.random(in: 0...count, using: &self)).map { _ in UInt8.random(in: .min ... .max, using: &self) }
  }

  mutating func bool() -> Bool { Bool.random(using: &self) }

  /// A seed of its own for each run, printed: it is the failing test.
  static func seeded(_ name: String) -> Random {
    let seed = UInt64.random(in: .min ... .max)
    print("\(name): seed \(seed)")
    return Random(seed: seed)
  }
}
