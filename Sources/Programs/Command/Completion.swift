import PurchasesAssembly

/// Completion scripts, made from the same table as the help.
enum Completion {
  static func run(_ words: [String]) -> Int32 {
    switch words.first {
    case "bash": Output.line(bash)
    case "zsh": Output.line("autoload -U +X bashcompinit && bashcompinit\n" + bash)
    case "fish": Output.line(fish)
    default:
      Output.error("purchases completion: bash, zsh or fish")
      return ExitStatus.usage
    }
    return 0
  }

  private static var bash: String {
    var cases = ""
    for verb in verbs {
      cases +=
        "    \"\(verb.name)\"*) words=\"\(verb.settings.map { "--\($0.name)" }.joined(separator: " ")) --help\" ;;\n"
    }
    let first = Set(verbs.map { $0.words[0] }).sorted().joined(separator: " ")
    return """
      _purchases() {
        local line="${COMP_WORDS[*]:1:COMP_CWORD-1}" words=""
        case "$line" in
      \(cases)    "") words="\(first) help version completion" ;;
      \(families)  esac
        COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
      }
      complete -o default -F _purchases purchases
      """
  }

  private static var families: String {
    var text = ""
    for (first, members) in Dictionary(grouping: verbs.filter { $0.words.count > 1 }, by: { $0.words[0] }).sorted(by: {
      $0.key < $1.key
    }) {
      text += "    \"\(first)\") words=\"\(members.map { $0.words[1] }.joined(separator: " "))\" ;;\n"
    }
    return text
  }

  private static var fish: String {
    verbs.map { verb in
      let condition =
        verb.words.count == 1
        ? "__fish_use_subcommand" : "__fish_seen_subcommand_from \(verb.words[0])"
      var lines = ["complete -c purchases -f -n '\(condition)' -a '\(verb.words.last ?? "")' -d '\(verb.summary)'"]
      for setting in verb.settings {
        lines.append(
          "complete -c purchases -n '__fish_seen_subcommand_from \(verb.words[0])' -l \(setting.name)"
            + (setting.placeholder == nil ? "" : " -r"))
      }
      return lines.joined(separator: "\n")
    }.joined(separator: "\n")
  }
}
