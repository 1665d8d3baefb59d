import PurchasesAssembly

/// One command of the program: what it takes, how it is explained and what it does.
struct Verb: Sendable {
  /// Its words, such as `["audit", "verify"]`.
  let words: [String]
  let summary: String
  /// What more there is to know before the first use; whole lines of the help.
  var notes: [String] = []
  /// Names of the arguments that are not flags, such as `TOPIC`.
  var arguments: [String] = []
  var optionalArguments: [String] = []
  /// Whether any number may follow of the last optional one.
  var takesMore = false
  var settings: [Setting] = []
  var examples: [String] = []
  /// Stable exit statuses beyond 0 and 2.
  var statuses: [(Int32, String)] = []
  let run: @Sendable (Call) throws -> Int32

  var name: String { words.joined(separator: " ") }

  var help: String {
    let usage =
      ["purchases", name] + arguments + optionalArguments.map { "[\($0)\(takesMore ? " ..." : "")]" }
      + (settings.isEmpty ? [] : ["[OPTION ...]"])
    var text = "\(summary)\n\nUsage: \(usage.joined(separator: " "))\n"
    if !notes.isEmpty { text += "\n" + notes.joined(separator: "\n") + "\n" }
    if !settings.isEmpty {
      text += "\nOptions:\n"
      for setting in settings {
        let left = "--\(setting.name)" + (setting.placeholder.map { " \($0)" } ?? "")
        let padding = String(repeating: " ", count: max(2, 30 - left.count))
        text += "  \(left)\(padding)\(setting.help)\(setting.isRepeatable ? " (repeatable)" : "")\n"
      }
    }
    if !statuses.isEmpty {
      text += "\nExit status: 0 done, 2 wrong usage"
      for (status, meaning) in statuses { text += ", \(status) \(meaning)" }
      text += "\n"
    }
    if !examples.isEmpty { text += "\nExamples:\n" + examples.map { "  \($0)\n" }.joined() }
    return text
  }
}

/// A command as it was called.
struct Call: Sendable {
  let verb: Verb
  let arguments: [String]
  let values: SettingValues
}

extension Verb {
  /// Reads what follows the command's words.
  func parse(_ words: [String]) throws(UsageError) -> Call {
    var flags: [String: [String]] = [:]
    var positional: [String] = []
    var index = 0
    var onlyArguments = false
    while index < words.count {
      let word = words[index]
      index += 1
      guard word.hasPrefix("--"), !onlyArguments else {
        positional.append(word)
        continue
      }
      if word == "--" {
        onlyArguments = true
        continue
      }
      let body = word.dropFirst(2)
      let mark = body.firstIndex(of: "=")
      let flag = String(mark.map { body[..<$0] } ?? body)
      guard let setting = settings.first(where: { $0.name == flag }) else {
        throw UsageError("purchases \(name): there is no option --\(flag) (see purchases \(name) --help)")
      }
      let value: String
      if let mark {
        value = String(body[body.index(after: mark)...])
      } else if setting.placeholder == nil {
        value = "true"
      } else {
        guard index < words.count else { throw UsageError("--\(flag): needs a value (\(setting.placeholder ?? ""))") }
        value = words[index]
        index += 1
      }
      guard setting.isRepeatable || flags[flag] == nil else { throw UsageError("--\(flag): is given twice") }
      flags[flag, default: []].append(value)
    }
    guard positional.count >= arguments.count else {
      throw UsageError("purchases \(name): needs \(arguments[positional.count...].joined(separator: " "))")
    }
    guard takesMore || positional.count <= arguments.count + optionalArguments.count else {
      throw UsageError("purchases \(name): takes no \(positional[arguments.count + optionalArguments.count])")
    }
    return Call(verb: self, arguments: positional, values: try SettingValues(flags: flags))
  }
}
