import Foundation
import PurchasesAssembly

@main
enum PurchasesMain {
  static let version = "1.0.0"

  static func main() {
    // A reader that goes away (`purchases tail | head`) ends the write with an error, not the process with a signal.
    signal(SIGPIPE, SIG_IGN)
    exit(run(Array(CommandLine.arguments.dropFirst())))
  }

  static func run(_ words: [String]) -> Int32 {
    guard let first = words.first, first != "--help", first != "-h", first != "help" || words.count > 1 else {
      Output.line(overview)
      return words.isEmpty ? ExitStatus.usage : 0
    }
    if first == "--version" || first == "version" {
      Output.line("purchases \(version)")
      return 0
    }
    if first == "completion" { return Completion.run(Array(words.dropFirst())) }
    let asked = first == "help" ? Array(words.dropFirst()) : words
    guard let verb = find(asked) else {
      let family = verbs.filter { $0.words.first == asked[0] }
      if !family.isEmpty {
        let members = family.map { "  \($0.name)  \($0.summary)" }.joined(separator: "\n")
        if first == "help" || asked.contains("--help") || asked.contains("-h") {
          Output.line(members)
          return 0
        }
        Output.error("purchases \(asked[0]): is one of\n\(members)")
      } else {
        Output.error("purchases: there is no command \(asked[0]) (see purchases --help)")
      }
      return ExitStatus.usage
    }
    let rest = Array(asked.dropFirst(verb.words.count))
    if first == "help" || rest.contains("--help") || rest.contains("-h") {
      Output.line(verb.help)
      return 0
    }
    do { return try verb.run(try verb.parse(rest)) } catch { return Output.failure(error) }
  }

  private static func find(_ words: [String]) -> Verb? {
    verbs.filter { words.starts(with: $0.words) }.max { $0.words.count < $1.words.count }
  }

  private static var overview: String {
    var text = """
      purchases: an event-sourced pipeline for App Store in-app purchases

      Usage: purchases COMMAND [OPTION ...]

      """
    for verb in verbs {
      let padding = String(repeating: " ", count: max(2, 26 - verb.name.count))
      text += "  \(verb.name)\(padding)\(verb.summary)\n"
    }
    return text + """

      `purchases COMMAND --help` explains one. Settings come from flags, else from the environment (PURCHASES_LOG, …), else
      from a file (--config). `purchases completion bash|zsh|fish` prints a completion script.
      """
  }
}
