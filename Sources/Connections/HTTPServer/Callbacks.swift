import CPurchasesHTTPServer

// The C side of the server. The context of each callback is the ServerState, which outlives the daemon: `HTTPServer` and
// the closure that stops the daemon hold it.

/// A body over the limit is read and dropped up to so many bytes, so that a client which sends first and reads later gets
/// its 413 rather than a reset; beyond that the connection is closed.
private let drainLimit = 16 << 20

private func serverState(_ context: UnsafeMutableRawPointer?) -> ServerState? {
  context.map { Unmanaged<ServerState>.fromOpaque($0).takeUnretainedValue() }
}

private func exchange(_ context: UnsafeMutableRawPointer?) -> Exchange? {
  context.map { Unmanaged<Exchange>.fromOpaque($0).takeUnretainedValue() }
}

func onConnection(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ socketContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ code: MHD_ConnectionNotificationCode
) {
  guard let state = serverState(context), let connection else { return }
  let key = UInt(bitPattern: connection)
  if code == .CONNECTION_NOTIFY_STARTED {
    state.opened(key, socket: purchases_mhd_socket(connection))
  } else {
    state.closed(key)
  }
}

/// Called with the raw target before anything is decoded; what it returns travels with the request and is released in
/// `onCompleted`, which the library calls for every request that got this far.
func onTarget(
  _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  guard let state = serverState(context), let target, let connection else { return nil }
  state.setDeadline(UInt(bitPattern: connection), in: state.settings.transferSeconds)
  let bytes = Array(UnsafeBufferPointer(start: target, count: strlenOf(target)))
  return Unmanaged.passRetained(Exchange(target: bytes.map { UInt8(bitPattern: $0) })).toOpaque()
}

func onCompleted(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ requestContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ code: MHD_RequestTerminationCode
) {
  guard let state = serverState(context), let connection, let held = requestContext?.pointee else { return }
  requestContext?.pointee = nil
  let exchange = Unmanaged<Exchange>.fromOpaque(held).takeRetainedValue()
  state.ended(UInt(bitPattern: connection), wasCounted: exchange.began)
}

func onAccess(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ url: UnsafePointer<CChar>?,
  _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ chunk: UnsafePointer<CChar>?,
  _ chunkSize: UnsafeMutablePointer<Int>?, _ requestContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let state = serverState(context), let exchange = exchange(requestContext?.pointee), let connection, let method,
    let chunkSize
  else { return .NO }
  if !exchange.began {
    exchange.began = true
    exchange.method = String(cString: method)
    return begin(exchange, state, connection)
  }
  if chunkSize.pointee > 0 {
    guard let chunk else { return .NO }
    defer { chunkSize.pointee = 0 }
    return take(UnsafeRawBufferPointer(start: chunk, count: chunkSize.pointee), exchange, state)
  }
  return finish(exchange, state, connection)
}

private func begin(_ exchange: Exchange, _ state: ServerState, _ connection: OpaquePointer) -> MHD_Result {
  if state.began() { exchange.refusal = .refusal(503, "stopping") }
  MHD_get_connection_values_n(
    connection, .HEADER_KIND,
    { context, _, name, nameSize, value, valueSize in
      guard let exchange = purchasesExchange(context), let name else { return .NO }
      exchange.headers.add(text(name, nameSize), text(value, valueSize))
      return .YES
    }, Unmanaged.passUnretained(exchange).toOpaque())
  if let declared = exchange.headers["content-length"].flatMap(Int.init), declared > state.settings.maxBody {
    exchange.refusal = exchange.refusal ?? tooLarge(state)
    // Who asks before sending, or would send for ever, is told at once.
    if declared > drainLimit || exchange.headers["expect"] != nil {
      return answer(tooLarge(state), state, connection)
    }
  }
  return .YES
}

private func take(_ bytes: UnsafeRawBufferPointer, _ exchange: Exchange, _ state: ServerState) -> MHD_Result {
  exchange.received += bytes.count
  if exchange.received > state.settings.maxBody {
    exchange.refusal = exchange.refusal ?? tooLarge(state)
    exchange.body = []
  }
  if exchange.refusal == nil { exchange.body.append(contentsOf: bytes) }
  return exchange.received > max(drainLimit, state.settings.maxBody) ? .NO : .YES
}

private func finish(_ exchange: Exchange, _ state: ServerState, _ connection: OpaquePointer) -> MHD_Result {
  if let refusal = exchange.refusal { return answer(refusal, state, connection) }
  guard let target = RequestTarget(exchange.target) else {
    return answer(.refusal(400, "the request target cannot be decoded"), state, connection)
  }
  let request = HTTPRequest(
    method: exchange.method, path: target.path, query: target.query, headers: exchange.headers, body: exchange.body)
  exchange.body = []
  state.setDeadline(UInt(bitPattern: connection), in: nil)
  return answer(state.handler(request), state, connection)
}

private func answer(_ response: HTTPResponse, _ state: ServerState, _ connection: OpaquePointer) -> MHD_Result {
  state.setDeadline(UInt(bitPattern: connection), in: state.settings.transferSeconds)
  guard response.status != HTTPResponse.noAnswer.status else { return .NO }
  let built = response.body.withUnsafeBytes { MHD_create_response_from_buffer_copy($0.count, $0.baseAddress) }
  guard let built else { return .NO }
  defer { MHD_destroy_response(built) }
  for field in response.headers.fields {
    // A value with a line break in it would be a second header; the library refuses it, and so do we.
    guard MHD_add_response_header(built, field.name, field.value) == .YES else {
      return answer(.refusal(500, "the answer had a malformed header"), state, connection)
    }
  }
  if state.shared.change({ $0.stopping }) { MHD_add_response_header(built, "connection", "close") }
  return MHD_queue_response(connection, UInt32(response.status), built)
}

private func tooLarge(_ state: ServerState) -> HTTPResponse {
  .refusal(413, "the body is larger than \(state.settings.maxBody) bytes")
}

private func purchasesExchange(_ context: UnsafeMutableRawPointer?) -> Exchange? {
  exchange(context)
}

private func text(_ bytes: UnsafePointer<CChar>?, _ count: Int) -> String {
  guard let bytes, count > 0 else { return "" }
  return String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
}

private func strlenOf(_ text: UnsafePointer<CChar>) -> Int {
  var count = 0
  while text[count] != 0 { count += 1 }
  return count
}
