import PurchasesContracts
import PurchasesCore
import PurchasesJSON

@testable import PurchasesGateway
@testable import PurchasesHTTPServer

/// A log that takes everything.
private struct Taking: LogProducer {
  func publish(
    _ records: [ProducedRecord], done: @escaping @Sendable ([Result<Coordinates, LogFailure>]) -> Void
  ) {
    for record in records {
      hold(record.record.value.map { !$0.isEmpty } == true, "an empty event was accepted")
    }
    done(records.indices.map { .success(Coordinates(topic: "received", partition: 0, offset: Int64($0))) })
  }

  func close(withinMilliseconds: Int64) -> Int { 0 }
}

private struct Standing: Clock {
  func now() -> Instant { Place.now }
}

private let routes = Routes(
  intake: EventIntake(settings: Gateway.Settings(), producer: Taking(), clock: Standing(), permits: nil), permits: nil,
  accounts: nil, products: nil, tokens: BearerTokens([]), clock: Standing(), probes: Gateway.Probes())

/// A request to the gateway: a line with method, target and content type, then the body.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = Place.bytes(start, count)
  let end = input.firstIndex(of: 0x0a) ?? input.endIndex
  let words = input[..<end].split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
  guard words.count == 3, let target = RequestTarget(Array(words[1])) else { return 0 }
  let request = HTTPRequest(
    method: String(decoding: words[0], as: UTF8.self), path: target.path, query: target.query,
    headers: HTTPHeaders([
      HTTPHeaders.Field(name: "content-type", value: String(decoding: words[2], as: UTF8.self)),
      HTTPHeaders.Field(name: "traceparent", value: String(decoding: words[2], as: UTF8.self)),
    ]), body: Array(input[end...].dropFirst()))
  let response = routes.answer(request)
  hold((200...599).contains(response.status), "no status of HTTP")
  hold(response.status != 500 && response.status != 503, "an answer that blames ourselves")
  if response.headers["content-type"]?.contains("json") == true {
    hold((try? JSONDocument(parsing: response.body)) != nil, "an answer is no JSON")
  }
  return 0
}
