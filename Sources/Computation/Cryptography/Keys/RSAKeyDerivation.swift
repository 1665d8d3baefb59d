import CPurchasesCrypto

/// RSA keys of 2,048 bits from a seed: the first primes found in a stream of derived candidates. OpenSSL's own
/// generator can't be seeded.
enum RSAKeyDerivation {
  private static let primeByteCount = 128
  private static let exponent: UInt = 65_537

  static func key(seed: [UInt8], label: String) -> KeyHandle {
    guard let context = BN_CTX_new() else { preconditionFailure("out of memory") }
    BN_CTX_start(context)
    defer {
      BN_CTX_end(context)
      BN_CTX_free(context)
    }
    func number() -> OpaquePointer {
      guard let number = BN_CTX_get(context) else { preconditionFailure("out of memory") }
      return number
    }
    let (e, p, q, n, d) = (number(), number(), number(), number(), number())
    let (p1, q1, phi, dp, dq, qInverse) = (number(), number(), number(), number(), number(), number())
    var counter: UInt32 = 0
    var done = BN_set_word(e, exponent) == 1
    for prime in [p, q] {
      findPrime(prime, seed: seed, label: label, counter: &counter, context: context)
    }
    done =
      done && BN_mul(n, p, q, context) == 1
      && BN_copy(p1, p) != nil && BN_sub_word(p1, 1) == 1
      && BN_copy(q1, q) != nil && BN_sub_word(q1, 1) == 1
      && BN_mul(phi, p1, q1, context) == 1
      && BN_mod_inverse(d, e, phi, context) != nil
      && BN_div(nil, dp, d, p1, context) == 1 && BN_div(nil, dq, d, q1, context) == 1
      && BN_mod_inverse(qInverse, q, p, context) != nil
    precondition(done, "OpenSSL could not derive an RSA key")
    let parameters = KeyParameters()
    parameters.add(OSSL_PKEY_PARAM_RSA_N, number: n)
    parameters.add(OSSL_PKEY_PARAM_RSA_E, number: e)
    parameters.add(OSSL_PKEY_PARAM_RSA_D, number: d)
    parameters.add(OSSL_PKEY_PARAM_RSA_FACTOR1, number: p)
    parameters.add(OSSL_PKEY_PARAM_RSA_FACTOR2, number: q)
    parameters.add(OSSL_PKEY_PARAM_RSA_EXPONENT1, number: dp)
    parameters.add(OSSL_PKEY_PARAM_RSA_EXPONENT2, number: dq)
    parameters.add(OSSL_PKEY_PARAM_RSA_COEFFICIENT1, number: qInverse)
    return parameters.key(type: "RSA")
  }

  private static func findPrime(
    _ prime: OpaquePointer, seed: [UInt8], label: String, counter: inout UInt32, context: OpaquePointer
  ) {
    while true {
      var bytes = HMACSHA256.derive(
        from: seed, info: "purchases key RSA \(label) \(counter)", count: primeByteCount)
      counter += 1
      // The two top bits make the product of two primes full length; the last makes the candidate odd.
      bytes[0] |= 0xC0
      bytes[bytes.count - 1] |= 0x01
      guard BN_bin2bn(bytes, Int32(bytes.count), prime) != nil else { preconditionFailure("out of memory") }
      // The exponent is prime, so it has an inverse unless it divides prime - 1.
      if BN_mod_word(prime, exponent) != 1, BN_check_prime(prime, context, nil) == 1 { return }
    }
  }
}
