import CPurchasesCrypto

/// SHA-1 by OpenSSL: what Apple's older receipts are signed over, and what ties a receipt to a device. For nothing else.
public enum SHA1 {
  public static let byteCount = 20

  public static func digest(_ bytes: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: byteCount) { output, initialised in
      precondition(
        EVP_Digest(bytes, bytes.count, output.baseAddress, nil, EVP_sha1(), nil) == 1, "OpenSSL could not hash")
      initialised = byteCount
    }
  }
}
