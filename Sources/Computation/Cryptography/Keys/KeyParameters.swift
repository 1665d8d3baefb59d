import CPurchasesCrypto

/// Builds a key from its numbers through OpenSSL's parameter lists. Numbers lent to it must outlive it.
final class KeyParameters {
  private let builder: OpaquePointer
  // The builder keeps addresses, not copies.
  private var kept: [UnsafeMutableRawBufferPointer] = []

  init() {
    guard let builder = OSSL_PARAM_BLD_new() else { preconditionFailure("out of memory") }
    self.builder = builder
  }

  deinit {
    OSSL_PARAM_BLD_free(builder)
    for memory in kept { memory.deallocate() }
  }

  func add(_ name: String, text: String) {
    let bytes = keep(Array(text.utf8))
    let done = OSSL_PARAM_BLD_push_utf8_string(
      builder, keep(name: name), bytes.assumingMemoryBound(to: CChar.self).baseAddress, bytes.count)
    precondition(done == 1, "out of memory")
  }

  func add(_ name: String, bytes: [UInt8]) {
    let bytes = keep(bytes)
    precondition(
      OSSL_PARAM_BLD_push_octet_string(builder, keep(name: name), bytes.baseAddress, bytes.count) == 1,
      "out of memory")
  }

  func add(_ name: String, number: OpaquePointer) {
    precondition(OSSL_PARAM_BLD_push_BN(builder, keep(name: name), number) == 1, "out of memory")
  }

  private func keep(_ bytes: [UInt8]) -> UnsafeMutableRawBufferPointer {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(bytes.count, 1), alignment: 1)
    memory.copyBytes(from: bytes)
    kept.append(memory)
    return UnsafeMutableRawBufferPointer(rebasing: memory[..<bytes.count])
  }

  private func keep(name: String) -> UnsafePointer<CChar>? {
    UnsafePointer(keep(Array(name.utf8) + [0]).assumingMemoryBound(to: CChar.self).baseAddress)
  }

  /// A key pair of the given type.
  func key(type: String) -> KeyHandle {
    guard let parameters = OSSL_PARAM_BLD_to_param(builder), let context = EVP_PKEY_CTX_new_from_name(nil, type, nil)
    else { preconditionFailure("out of memory") }
    defer {
      OSSL_PARAM_free(parameters)
      EVP_PKEY_CTX_free(context)
    }
    var key: OpaquePointer?
    precondition(
      EVP_PKEY_fromdata_init(context) == 1
        && EVP_PKEY_fromdata(context, &key, purchases_key_pair(), parameters) == 1,
      "OpenSSL refused derived key numbers")
    guard let key else { preconditionFailure("OpenSSL made no key") }
    return KeyHandle(key)
  }
}
