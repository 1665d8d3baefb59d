/// One case of a conformance suite: a name that says what holds, and the attempt to show that it does not.
public struct EventLogCase: Sendable, CustomStringConvertible {
  public let name: String
  private let body: @Sendable (LogCase) throws -> Void

  init(_ name: String, _ body: @escaping @Sendable (LogCase) throws -> Void) {
    self.name = name
    self.body = body
  }

  /// - Parameter harness: must have a prefix that no other case has used.
  public func run(_ harness: EventLogHarness) throws {
    let attempt = try LogCase(harness)
    defer { attempt.finish() }
    try body(attempt)
  }

  public var description: String { name }
}

/// What every `EventLog` has to do. Nothing here counts on offsets without gaps or on an assignment that comes at once:
/// a broker spends offsets on its own records and takes seconds to move partitions.
public let eventLogConformance: [EventLogCase] =
  topicCases + recordCases + readerCases + groupCases + commitCases + membershipCases
