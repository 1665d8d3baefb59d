import Dispatch
import Synchronization

/// What conformance suites say when an expectation does not hold. Suites import no test framework: a case that throws
/// has failed, whoever runs it.
public struct Unmet: Error, CustomStringConvertible {
  public let description: String

  public init(_ what: String, file: StaticString = #fileID, line: UInt = #line) {
    description = "\(file):\(line): \(what)"
  }
}

public enum Conformance {
  public static func expect(
    _ condition: Bool, _ what: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
  ) throws {
    if !condition { throw Unmet(what(), file: file, line: line) }
  }

  public static func expectEqual<Value: Equatable>(
    _ found: Value, _ wanted: Value, _ what: @autoclosure () -> String = "", file: StaticString = #fileID,
    line: UInt = #line
  ) throws {
    if found != wanted { throw Unmet("\(what()) found \(found), wanted \(wanted)", file: file, line: line) }
  }

  public static func require<Value>(
    _ value: Value?, _ what: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
  ) throws -> Value {
    guard let value else { throw Unmet("nil: \(what())", file: file, line: line) }
    return value
  }

  /// Runs the body once for each index at the same time, each on a thread that may block; throws the first failure.
  public static func atOnce(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    let failures = Mutex<[any Error]>([])
    let group = DispatchGroup()
    for index in 0..<count {
      // A queue each: a shared one could run them one after the other.
      DispatchQueue(label: "conformance \(index)").async(group: group) {
        do {
          try body(index)
        } catch {
          failures.withLock { $0.append(error) }
        }
      }
    }
    group.wait()
    if let first = failures.withLock({ $0.first }) { throw first }
  }
}

/// A repeatable source of random numbers (SplitMix64): the same seed gives the same run.
public struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  public init(seed: UInt64) { state = seed }

  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}
