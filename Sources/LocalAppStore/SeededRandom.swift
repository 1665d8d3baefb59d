/// SplitMix64: small, fast, and the same on every machine and in every Swift; nothing here needs more.
struct SeededRandom {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  /// A stream of its own for each account, so that one account's story doesn't depend on how many others there are.
  init(seed: UInt64, stream: UInt64) {
    var first = SeededRandom(seed: seed &+ stream &* 0xD1B5_4A32_D192_ED03)
    state = first.next()
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// 0 ..< bound. The slight bias of a remainder is of no matter for stories.
  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  mutating func within(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }

  /// True in so many of a hundred cases.
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

  mutating func pick<T>(_ list: [T]) -> T { list[below(list.count)] }

  /// A version 4 UUID in lower case.
  mutating func uuid() -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for index in 0..<36 {
      switch index {
      case 8, 13, 18, 23: text.append(UInt8(ascii: "-"))
      case 14: text.append(UInt8(ascii: "4"))
      case 19: text.append(digits[8 + below(4)])
      default: text.append(digits[below(16)])
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
