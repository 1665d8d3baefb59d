import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesHTTPClient
import PurchasesJSON

extension ScenarioPlayer {
  /// The gateway holds a question open for so long at the most, in seconds; a client asks again.
  private static let longestQuestion = 20.0
  private static let pauseMilliseconds: UInt32 = 50

  /// Asks until there is an answer that won't change, or patience ends: `finishable granted`, `refused none`, `pending`.
  func wait(for permit: Step.Permit) -> String {
    let path =
      "/v1/permits/\(permit.environment.rawValue)/\(permit.account.text)/\(permit.key(scenario.authority))"
    let end = ContinuousClock.now + .seconds(settings.patience)
    var last = "pending"
    while true {
      let left = ContinuousClock.now.duration(to: end)
      let seconds = max(0, min(Self.longestQuestion, Double(left.components.seconds)))
      if let answer = get("\(path)?wait=\(seconds)") {
        let status = answer["status"]?.string ?? "unreadable"
        if status != "pending" { return [status, answer["content"]?.string].compactMap { $0 }.joined(separator: " ") }
        last = status
      } else {
        last = "unanswered"
      }
      guard ContinuousClock.now < end, !isStopped else { return last }
      usleep(Self.pauseMilliseconds * 1000)
    }
  }

  func sees(_ environment: Environment, _ account: Account, _ unit: String, _ amount: Int64) -> Bool {
    let end = ContinuousClock.now + .seconds(settings.patience)
    while true {
      let answer = get("/v1/accounts/\(environment.rawValue)/\(account.text)")
      let balance = answer?["balances"]?.elements.first { $0["unit"]?.isString(unit) == true }
      if balance?["amount"]?.int64 == amount { return true }
      guard ContinuousClock.now < end, !isStopped else { return false }
      usleep(Self.pauseMilliseconds * 1000)
    }
  }

  private func get(_ path: String) -> JSONView? {
    var headers: [HTTPCall.Header] = []
    if let token = settings.token { headers.append(("authorization", "Bearer " + token)) }
    do throws(HTTPClientError) {
      let answer = try send(HTTPCall("GET", settings.gateway + path, headers: headers))
      // Nobody has heard of the account yet, or the answer is on its way.
      guard answer.status == 200 else { return nil }
      return try? JSONDocument(parsing: answer.body).root
    } catch {
      // The path names an account; what it asked for is the same for all of them.
      note("a question to the gateway: \(error)")
      return nil
    }
  }
}

extension JSONView {
  fileprivate func isString(_ text: String) -> Bool { string == text }
}
