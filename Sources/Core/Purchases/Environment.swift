/// Where a purchase was made. It is part of every topic key and every storage key, so that nothing crosses over.
public enum Environment: String, Sendable, Hashable, CaseIterable, Comparable {
  case production = "Production"
  case sandbox = "Sandbox"
  case xcode = "Xcode"
  case localTesting = "LocalTesting"

  public static func < (a: Environment, b: Environment) -> Bool { a.rawValue < b.rawValue }

  /// Xcode and local testing are signed by a certificate of the developer's own machine, not by Apple.
  public var isSignedLocally: Bool { self == .xcode || self == .localTesting }
}
