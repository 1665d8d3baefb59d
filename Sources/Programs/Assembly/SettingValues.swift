import Foundation

/// A mistake in how the program was called or set up. Names the setting; exit status 2.
public struct UsageError: Error, Sendable, Hashable, CustomStringConvertible {
  public let description: String
  public init(_ description: String) { self.description = description }
}

/// Values by setting, from flags over environment over file, with where each comes from.
public struct SettingValues: Sendable {
  public enum Origin: String, Sendable {
    case flag, environment, file
    /// Nobody set it.
    case standard = "default"
  }

  public private(set) var values: [String: (origin: Origin, values: [String])] = [:]

  public init(
    flags: [String: [String]], environment: [String: String] = ProcessInfo.processInfo.environment,
    known: [Setting] = Setting.all
  ) throws(UsageError) {
    for setting in known {
      if let text = environment[setting.environmentName], !text.isEmpty {
        // Several values of a repeatable one stand on lines of their own: commas occur in librdkafka's values.
        let parts = setting.isRepeatable ? text.split(separator: "\n").map(String.init) : [text]
        values[setting.name] = (.environment, parts)
      }
    }
    let file = flags[Setting.config.name]?.last ?? environment[Setting.config.environmentName]
    if let file {
      for (name, found) in try Self.read(file, known: known) where values[name] == nil { values[name] = (.file, found) }
    }
    for (name, found) in flags { values[name] = (.flag, found) }
  }

  private static func read(_ path: String, known: [Setting]) throws(UsageError) -> [String: [String]] {
    guard let text = String(validating: try Files.read(path, .config), as: UTF8.self) else {
      throw UsageError("--config \(path): is not UTF-8 text")
    }
    var found: [String: [String]] = [:]
    for (index, raw) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let line = raw.trimmingCharacters(in: .whitespaces)
      guard !line.isEmpty, !line.hasPrefix("#") else { continue }
      guard let mark = line.firstIndex(of: "=") else { throw UsageError("\(path), line \(index + 1): no `=`") }
      let name = line[..<mark].trimmingCharacters(in: .whitespaces)
      guard let setting = known.first(where: { $0.name == name }) else {
        throw UsageError("\(path), line \(index + 1): there is no setting \(name)")
      }
      let value = line[line.index(after: mark)...].trimmingCharacters(in: .whitespaces)
      if found[name] != nil, !setting.isRepeatable {
        throw UsageError("\(path), line \(index + 1): \(name) is set twice")
      }
      found[name, default: []].append(value)
    }
    return found
  }

  /// Where a setting was given, for a message about it.
  public func place(of setting: Setting) -> String {
    switch values[setting.name]?.origin {
    case .environment: "\(setting.environmentName) (in the environment)"
    case .file: "\(setting.name) (in the file of --config)"
    case .flag, .standard, nil: "--\(setting.name)"
    }
  }

  public func text(_ setting: Setting) -> String? { values[setting.name]?.values.last }
  public func texts(_ setting: Setting) -> [String] { values[setting.name]?.values ?? [] }

  public func flag(_ setting: Setting) throws(UsageError) -> Bool {
    switch text(setting)?.lowercased() {
    case nil, "false", "0", "no": return false
    case "", "true", "1", "yes": return true
    default: throw UsageError("--\(setting.name): must be true or false")
    }
  }

  public func number<T: FixedWidthInteger>(_ setting: Setting, _ range: ClosedRange<T>) throws(UsageError) -> T? {
    guard let text = text(setting) else { return nil }
    guard let value = T(text), range.contains(value) else {
      throw UsageError("--\(setting.name): must be a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }
}
