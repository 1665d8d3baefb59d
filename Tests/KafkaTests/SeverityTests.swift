import Testing

@testable import PurchasesKafka

/// Which answers of a broker are asked again. No broker needed.
@Suite struct KafkaSeverityTests {
  /// What a broker says while leaders change, by the protocol's numbers: all of it passes.
  @Test(arguments: [5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 72, 74, 75, 78, 80, 83, 88, 89] as [Int32])
  func whatPassesIsAskedAgain(code: Int32) {
    #expect(KafkaError.severity(of: KafkaCode(rawValue: code)) == .retriable, "\(KafkaCode(rawValue: code))")
  }

  /// Not permitted, no such topic, too large: asking again would not help.
  @Test(arguments: [10, 17, 29, 30, 31, 44] as [Int32])
  func whatStaysIsNot(code: Int32) {
    #expect(KafkaError.severity(of: KafkaCode(rawValue: code)) == .permanent, "\(KafkaCode(rawValue: code))")
  }
}
