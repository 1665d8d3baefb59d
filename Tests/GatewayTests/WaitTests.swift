import PurchasesContracts
import PurchasesCore
import PurchasesJSON
import PurchasesTestKit
import Testing

/// Requests that wait for an answer. What the gateway looks at while they do is the fact that tells that they wait.
@Suite(.timeLimit(.minutes(1)))
struct WaitTests {
  private func account(_ name: String) throws -> Account { try #require(Account(name)) }

  private func alias(_ name: String) throws -> RowKey { MergedAccount.key(.production, try account(name)) }

  private func permitKey(_ name: String, _ proof: String = "p") throws -> RowKey {
    PermitRow.key(.production, try account(name), proof: proof)
  }

  private func permit(_ name: String, _ proof: String = "p", status: String = "finishable") throws -> Row {
    Row(
      try permitKey(name, proof),
      [.text(status), .text("none"), .text("granted"), .text("7"), .text("coins"), .null, .integer(1)])
  }

  private struct Told: Sendable {
    var status = -1
    var json: JSON?
  }

  private func waiting(_ gateway: GatewayFixture, _ path: String, _ wait: Double = 30) -> Running<Told> {
    onThreads(1) { _ in
      let mark = path.contains("?") ? "&" : "?"
      guard let answer = try? gateway.send("GET", "\(path)\(mark)wait=\(wait)") else { return Told() }
      return Told(status: answer.status, json: answer.json)
    }
  }

  @Test func oneLookIsForAllWhoWait() throws {
    let gateway = try GatewayFixture()
    let names = (0..<40).map { "u\($0)" }
    let polls = names.map { waiting(gateway, "/v1/permits/Production/\($0)/p") }
    let keys = try Set(names.flatMap { [try permitKey($0), try alias($0)] })
    while gateway.store.looked != keys {}
    // Who is answered goes, and the others wait on.
    for name in names.dropLast() { gateway.store.put(try permit(name)) }
    for poll in polls.dropLast() { #expect(poll.wait().map(\.json?["status"]) == ["finishable"]) }
    while gateway.store.looked.count != 2 {}
    gateway.store.put(try permit("u39", status: "refused"))
    #expect(polls[39].wait().map(\.json?["status"]) == ["refused"])
  }

  /// An answer that is pending may change what it says of itself and still be none.
  @Test func whatIsStillPendingIsWaitedForOn() throws {
    let gateway = try GatewayFixture()
    let poll = waiting(gateway, "/v1/permits/Production/u/p")
    while try !gateway.store.looked.contains(permitKey("u")) {}
    gateway.store.put(try permit("u", status: "pending"))
    let reads = gateway.store.reads
    while gateway.store.reads < reads + 10 {}
    gateway.store.put(try permit("u"))
    #expect(poll.wait().map(\.json?["status"]) == ["finishable"])
  }

  @Test func whoIsMergedWhileWaitingIsAnsweredAsWhoTheyBecame() throws {
    let gateway = try GatewayFixture()
    let byProof = waiting(gateway, "/v1/permits/Production/guest/p")
    let byTransaction = waiting(gateway, "/v1/permits/Production/guest?transaction=7")
    let request = waiting(gateway, "/v1/answers/Production/guest/spend:k")
    let answer = AnswerRow.key(.production, try account("guest"), "spend:k")
    while try !gateway.store.looked.isSuperset(of: [permitKey("guest"), alias("guest"), answer]) {}
    gateway.store.put(Row(try alias("guest"), [.text("u")]))
    let name = AskedRequest.name("spend:k", from: try account("guest"))
    let later = AnswerRow.key(.production, try account("u"), name)
    while try !gateway.store.looked.isSuperset(of: [permitKey("u"), alias("u"), later]) {}
    gateway.store.put(try permit("u"))
    gateway.store.put(
      AnswerRow(
        kind: "spend", outcome: .done, reason: "spent", asked: "coins 1", version: 7, source: "purchases.owned/0/1",
        recordedAt: Instant(milliseconds: 1000)
      ).row(later))
    for poll in [byProof, byTransaction] { #expect(poll.wait().map(\.json?["status"]) == ["finishable"]) }
    #expect(request.wait().map(\.json?["outcome"]) == ["done"])
  }

  @Test func aStoreThatFailsWhileSomebodyWaitsIsTold() throws {
    let gateway = try GatewayFixture()
    let polls = (0..<3).map { waiting(gateway, "/v1/permits/Production/u\($0)/p") }
    while try !gateway.store.looked.isSuperset(of: (0..<3).map { try permitKey("u\($0)") }) {}
    gateway.store.fail(StoreFailure(.unavailable, "down"))
    for poll in polls { #expect(poll.wait().map(\.status) == [503]) }
    // And it is looked again for who comes afterwards.
    gateway.store.fail(nil)
    let next = waiting(gateway, "/v1/permits/Production/u9/p")
    while try !gateway.store.looked.contains(permitKey("u9")) {}
    gateway.store.put(try permit("u9"))
    #expect(next.wait().map(\.status) == [200])
  }

  @Test func aWaitEndsWhenItsTimeIsOver() throws {
    let gateway = try GatewayFixture()
    #expect(waiting(gateway, "/v1/permits/Production/u/p", 0.02).wait().map(\.json?["status"]) == ["pending"])
    #expect(waiting(gateway, "/v1/permits/Production/u?transaction=7", 0.02).wait().map(\.status) == [200])
    #expect(try gateway.store.looked.isSubset(of: [permitKey("u"), alias("u")]))
  }

  @Test func tooManyWaitersAreAnsweredAtOnce() throws {
    let gateway = try GatewayFixture(maxWaiters: 2)
    let polls = ["u", "v"].map { waiting(gateway, "/v1/permits/Production/\($0)/p") }
    while try !gateway.store.looked.isSuperset(of: [permitKey("u"), permitKey("v")]) {}
    // With both places taken this returns by itself, long before its wait is over.
    #expect(try gateway.send("GET", "/v1/permits/Production/w/p?wait=30").json?["status"] == "pending")
    for name in ["u", "v"] { gateway.store.put(try permit(name)) }
    for poll in polls { #expect(poll.wait().map(\.json?["status"]) == ["finishable"]) }
    // The places are free again.
    let third = waiting(gateway, "/v1/permits/Production/w/p")
    while try !gateway.store.looked.contains(permitKey("w")) {}
    gateway.store.put(try permit("w"))
    #expect(third.wait().map(\.json?["status"]) == ["finishable"])
  }

  @Test func allWaitsEndWhenTheGatewayStops() throws {
    let gateway = try GatewayFixture()
    let polls = (0..<8).map { waiting(gateway, "/v1/permits/Production/u\($0)/p", 30) }
    while try !gateway.store.looked.isSuperset(of: (0..<8).map { try permitKey("u\($0)") }) {}
    #expect(gateway.gateway.stop(within: 30))
    for poll in polls { #expect(poll.wait().map(\.json?["status"]) == ["pending"]) }
  }
}
