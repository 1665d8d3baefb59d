import CPurchasesCurl
import Glibc

/// libcurl wants to be set up once, before any thread uses it.
private let curlIsReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

/// One libcurl easy handle with its connections.
///
/// `@unchecked Sendable`: libcurl allows a handle to move between threads as long as one uses it at a time; the client lends
/// it to one call and takes it back when that is over.
final class EasyHandle: @unchecked Sendable {
  private let handle: UnsafeMutableRawPointer

  init?() {
    guard curlIsReady, let handle = curl_easy_init() else { return nil }
    self.handle = handle
  }

  deinit {
    curl_easy_cleanup(handle)
  }

  func perform(_ call: HTTPCall, _ settings: HTTPClient.Settings) throws(HTTPClientError) -> HTTPAnswer {
    // Forgets the options of the call before, keeps the connections.
    curl_easy_reset(handle)
    let intake = Intake(limit: settings.maxAnswer)
    let total = call.totalSeconds ?? settings.totalSeconds
    guard let parts = URLParts(call.url) else { throw .malformedCall("the URL is not usable") }
    try prepare(call, parts, settings, total)
    let list = try headerList(call)
    defer { curl_slist_free_all(list) }
    purchases_curl_set_pointer(handle, CURLOPT_HTTPHEADER, list)
    let context = Unmanaged.passUnretained(intake).toOpaque()
    purchases_curl_set_sink(handle, CURLOPT_WRITEFUNCTION, takeBody)
    purchases_curl_set_pointer(handle, CURLOPT_WRITEDATA, context)
    purchases_curl_set_sink(handle, CURLOPT_HEADERFUNCTION, takeHeader)
    purchases_curl_set_pointer(handle, CURLOPT_HEADERDATA, context)
    let code = withExtendedLifetime(intake) {
      (call.body ?? []).withUnsafeBytes { bytes in
        if let body = call.body {
          purchases_curl_set_off(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
          // A null pointer would make libcurl read the body from standard input.
          purchases_curl_set_pointer(
            handle, CURLOPT_POSTFIELDS, UnsafeMutableRawPointer(mutating: bytes.baseAddress ?? emptyBody))
          purchases_curl_set_text(handle, CURLOPT_CUSTOMREQUEST, call.method)
        }
        return curl_easy_perform(handle)
      }
    }
    if intake.overflowed { throw .tooLarge(limit: settings.maxAnswer) }
    guard code == CURLE_OK else { throw failure(code, host: parts.host, total, settings) }
    var status = 0
    purchases_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
    return HTTPAnswer(status: status, headers: intake.headers, body: intake.body)
  }

  private func prepare(
    _ call: HTTPCall, _ parts: URLParts, _ settings: HTTPClient.Settings, _ total: Double
  ) throws(HTTPClientError) {
    guard !call.method.isEmpty, call.method.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw .malformedCall("the method has a character that may not stand there")
    }
    guard ["http", "https"].contains(parts.scheme),
      purchases_curl_set_text(handle, CURLOPT_URL, call.url) == CURLE_OK,
      purchases_curl_set_text(handle, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK
    else { throw .malformedCall("the URL is not usable") }
    // Signals and threads don't go together.
    purchases_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
    purchases_curl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0)
    purchases_curl_set_long(handle, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    purchases_curl_set_long(handle, CURLOPT_SSL_VERIFYPEER, 1)
    purchases_curl_set_long(handle, CURLOPT_SSL_VERIFYHOST, 2)
    purchases_curl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(settings.connectSeconds))
    purchases_curl_set_long(handle, CURLOPT_TIMEOUT_MS, milliseconds(total))
    purchases_curl_set_text(handle, CURLOPT_NOPROXY, proxyExceptions)
    if call.isSentOnce { purchases_curl_set_long(handle, CURLOPT_FRESH_CONNECT, 1) }
    if let file = settings.caFile {
      guard purchases_curl_set_text(handle, CURLOPT_CAINFO, file) == CURLE_OK else {
        throw .tls("this build of libcurl takes no CA file")
      }
      purchases_curl_set_pointer(handle, CURLOPT_CAPATH, nil)
    }
    switch call.method {
    case "GET": purchases_curl_set_long(handle, CURLOPT_HTTPGET, 1)
    case "HEAD": purchases_curl_set_long(handle, CURLOPT_NOBODY, 1)
    default: purchases_curl_set_text(handle, CURLOPT_CUSTOMREQUEST, call.method)
    }
  }

  private func headerList(_ call: HTTPCall) throws(HTTPClientError) -> UnsafeMutablePointer<curl_slist>? {
    // libcurl would hold back a larger body for a second, waiting for a 100 Continue that many servers never send.
    var list = curl_slist_append(nil, "Expect:")
    if call.body != nil, !call.headers.contains(where: { $0.name.lowercased() == "content-type" }) {
      // Not what libcurl assumes of a body, a web form.
      list = curl_slist_append(list, "Content-Type:")
    }
    for header in call.headers {
      guard !(header.name + header.value).utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }), !header.name.isEmpty else {
        curl_slist_free_all(list)
        throw .malformedCall("the header \(header.name.filter { $0.isLetter || $0 == "-" }) has a control character")
      }
      // An empty value is sent only when the line ends in a semicolon.
      list = curl_slist_append(list, header.value.isEmpty ? header.name + ";" : header.name + ": " + header.value)
    }
    return list
  }
}

/// Where an empty body points to.
nonisolated(unsafe) private let emptyBody = UnsafeRawPointer(
  UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1))

/// This machine is never reached through a proxy, whatever else the environment excepts.
private let proxyExceptions: String = {
  let own = "localhost,127.0.0.1,::1"
  guard let more = getenv("no_proxy") ?? getenv("NO_PROXY") else { return own }
  return String(cString: more) == "*" ? "*" : own + "," + String(cString: more)
}()

private func milliseconds(_ seconds: Double) -> Int {
  // Zero would mean "no limit" to libcurl.
  max(1, Int((seconds * 1000).rounded(.up)))
}

/// What arrives, bounded.
private final class Intake {
  let limit: Int
  var headers: [HTTPCall.Header] = []
  var headerBytes = 0
  var body: [UInt8] = []
  var overflowed = false

  init(limit: Int) {
    self.limit = limit
  }
}

/// libcurl takes a shorter count than it offered as the order to stop.
private let stop = 0

private func takeBody(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  guard let bytes, let context else { return stop }
  let intake = Unmanaged<Intake>.fromOpaque(context).takeUnretainedValue()
  guard intake.body.count + size * count <= intake.limit else {
    intake.overflowed = true
    return stop
  }
  intake.body.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: size * count))
  return size * count
}

private func takeHeader(
  _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
  guard let bytes, let context else { return stop }
  let intake = Unmanaged<Intake>.fromOpaque(context).takeUnretainedValue()
  let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
  intake.headerBytes += line.count
  guard intake.headerBytes <= intake.limit else {
    intake.overflowed = true
    return stop
  }
  if line.starts(with: "HTTP/".utf8) {
    intake.headers = []
  } else if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
    intake.headers.append((trimmed(line[..<colon]), trimmed(line[(colon + 1)...])))
  }
  return line.count
}

private func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
  let kept = bytes.drop { $0 <= 0x20 }
  guard let last = kept.lastIndex(where: { $0 > 0x20 }) else { return "" }
  return String(decoding: kept[...last], as: UTF8.self)
}
