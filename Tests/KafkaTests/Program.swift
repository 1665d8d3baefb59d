import Foundation
import Glibc

struct ProgramFailed: Error, CustomStringConvertible {
  let description: String
}

/// Runs a program to its end and answers what it said, on both its outputs. `Foundation.Process` waits by a run loop, which does
/// not end on the threads that tests run on.
@discardableResult
func run(_ arguments: String...) throws -> String { try run(words: arguments) }

@discardableResult
func run(words arguments: [String]) throws -> String {
  let output = FileManager.default.temporaryDirectory.appendingPathComponent(Broker.fresh("output")).path
  defer { unlink(output) }
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
  posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
  posix_spawn_file_actions_adddup2(&actions, 1, 2)
  var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
  words.append(nil)
  defer { for word in words { free(word) } }
  var child = pid_t()
  let outcome = posix_spawnp(&child, arguments[0], &actions, nil, &words, environ)
  guard outcome == 0 else { throw ProgramFailed(description: "\(arguments[0]): \(String(cString: strerror(outcome)))") }
  var status: Int32 = 0
  while waitpid(child, &status, 0) == -1, errno == EINTR {}
  let text = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
  guard status == 0 else {
    throw ProgramFailed(description: "\(arguments.joined(separator: " ")): status \(status): \(text)")
  }
  return text
}
