import Glibc

/// Opens the listening socket ourselves, so that a busy port or a wrong address is told by name instead of by a null handle.
func openListeningSocket(address: String, port: UInt16) throws(HTTPServerError) -> (socket: Int32, port: UInt16) {
  var hints = addrinfo()
  hints.ai_family = AF_UNSPEC
  hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
  var list: UnsafeMutablePointer<addrinfo>?
  let code = getaddrinfo(address, String(port), &hints, &list)
  guard code == 0, let found = list else {
    throw .address(address, reason: String(cString: gai_strerror(code)))
  }
  defer { freeaddrinfo(list) }
  let descriptor = socket(
    found.pointee.ai_family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
  guard descriptor >= 0 else { throw .bind(address: address, port: port, reason: systemReason(errno)) }
  var on: Int32 = 1
  // A restart must not wait for the last connections of the process before to time out.
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
  guard bind(descriptor, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0,
    listen(descriptor, SOMAXCONN) == 0
  else {
    let reason = systemReason(errno)
    close(descriptor)
    throw .bind(address: address, port: port, reason: reason)
  }
  return (descriptor, boundPort(of: descriptor))
}

private func boundPort(of descriptor: Int32) -> UInt16 {
  var storage = sockaddr_storage()
  var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
  return withUnsafeMutableBytes(of: &storage) { bytes in
    guard let base = bytes.baseAddress,
      getsockname(descriptor, base.assumingMemoryBound(to: sockaddr.self), &length) == 0
    else { return 0 }
    // The port stands at the same place, in network order, for both families.
    return UInt16(bytes[2]) << 8 | UInt16(bytes[3])
  }
}

func systemReason(_ code: Int32) -> String {
  String(cString: strerror(code))
}

/// The bytes of a small file, with a NUL at the end as the library wants PEM text.
func readTLSFile(_ path: String) throws(HTTPServerError) -> [CChar] {
  guard let file = fopen(path, "rb") else { throw .tlsFile(path: path, reason: systemReason(errno)) }
  defer { fclose(file) }
  /// A certificate chain takes a few kilobytes; what is larger is not one.
  let limit = 1 << 20
  var bytes = [CChar](repeating: 0, count: limit + 1)
  let count = fread(&bytes, 1, limit + 1, file)
  guard ferror(file) == 0 else { throw .tlsFile(path: path, reason: systemReason(errno)) }
  guard count > 0, count <= limit else { throw .tlsFile(path: path, reason: "its length is not that of a PEM file") }
  return Array(bytes[..<count]) + [0]
}
