import CPurchasesCurl
import Glibc

extension EasyHandle {
  func failure(
    _ code: CURLcode, host: String, _ total: Double, _ settings: HTTPClient.Settings
  ) -> HTTPClientError {
    let reason = String(cString: curl_easy_strerror(code))
    switch code {
    case CURLE_URL_MALFORMAT:
      return .malformedCall("the URL is not usable")
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
      return .cannotResolve(host)
    case CURLE_COULDNT_CONNECT:
      return .refused(host)
    case CURLE_OPERATION_TIMEDOUT:
      return .timeout("\(host) did not answer within \(settings.connectSeconds) s to connect, \(total) s in all")
    case CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE, CURLE_SSL_SHUTDOWN_FAILED:
      return .reset("\(host): \(reason)")
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED:
      return .tls("\(host): \(reason)")
    // The scheme was checked before: here it is libcurl's word for an answer without a status line.
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING:
      return .notHTTP("\(host): \(reason)")
    default:
      return .other(code: Int(code.rawValue), "\(host): \(reason)")
    }
  }
}

/// What of a URL may stand in a message (host and port) and what is checked (scheme); nothing of user, path or query.
struct URLParts {
  let scheme: String
  let host: String

  init?(_ url: String) {
    guard let handle = curl_url() else { return nil }
    defer { curl_url_cleanup(handle) }
    guard curl_url_set(handle, CURLUPART_URL, url, 0) == CURLUE_OK,
      let scheme = Self.part(CURLUPART_SCHEME, of: handle), let host = Self.part(CURLUPART_HOST, of: handle)
    else { return nil }
    self.scheme = scheme
    self.host = Self.part(CURLUPART_PORT, of: handle).map { host + ":" + $0 } ?? host
  }

  private static func part(_ which: CURLUPart, of handle: OpaquePointer) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(handle, which, &text, UInt32(CURLU_DEFAULT_PORT)) == CURLUE_OK, let text else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }
}
