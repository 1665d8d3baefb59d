import PurchasesTestKit

extension SeededRandom {
  mutating func bytes(upTo count: Int) -> [UInt8] {
    (0..<Int.random(in: 0...count, using: &self)).map { _ in UInt8.random(in: .min ... .max, using: &self) }
  }

  mutating func bool() -> Bool { Bool.random(using: &self) }

  /// A seed of its own for each run, printed: it is the failing test.
  static func seeded(_ name: String) -> SeededRandom {
    let seed = UInt64.random(in: .min ... .max)
    print("\(name): seed \(seed)")
    return SeededRandom(seed: seed)
  }
}
