import CPurchasesCrypto

/// OpenSSL keeps a queue of errors per thread. A left-over entry would be taken for a fault of the next TLS call on this
/// thread, so whoever handles a failure empties it.
func clearOpenSSLErrors() { ERR_clear_error() }

/// Runs one of OpenSSL's `d2i` functions over the bytes; an object counts only if reading it took all of them.
func readingDER(
  _ der: [UInt8], free: (OpaquePointer) -> Void,
  _ read: (UnsafeMutablePointer<UnsafePointer<UInt8>?>, Int) -> OpaquePointer?
) -> OpaquePointer? {
  der.withUnsafeBufferPointer { buffer in
    guard let start = buffer.baseAddress else { return nil }
    var cursor: UnsafePointer<UInt8>? = start
    guard let result = read(&cursor, buffer.count) else {
      clearOpenSSLErrors()
      return nil
    }
    // Some readers try one form after another and leave errors behind though the last one fits.
    clearOpenSSLErrors()
    guard cursor == start + buffer.count else {
      free(result)
      return nil
    }
    return result
  }
}

/// Runs one of OpenSSL's `i2d` functions twice: for the length and for the bytes.
func encodedDER(_ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> [UInt8] {
  let count = write(nil)
  precondition(count > 0, "OpenSSL could not encode")
  return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, initialised in
    var cursor = buffer.baseAddress
    let written = write(&cursor)
    precondition(written == count, "OpenSSL could not encode")
    initialised = Int(written)
  }
}
