import Glibc
import PurchasesCryptography

extension LocalAuthority {
  /// 32 bytes: the strength of the keys made from it.
  static let seedBytes = 32

  /// The authority of a folder. On first use it makes the folder, a random seed (`seed`, readable by its owner only), and
  /// writes `root.der` (the trust anchor to configure) and `xcode.der` (the certificate for Xcode and local testing).
  public init(folder: String, responder: String? = nil) throws(AuthorityFolderFailure) {
    if mkdir(folder, 0o755) != 0, errno != EEXIST { throw AuthorityFolderFailure("make", folder, errno) }
    let seedFile = folder + "/seed"
    let seed: [UInt8]
    if let kept = try Self.read(seedFile) { seed = kept } else { seed = try Self.makeSeed(seedFile) }
    guard seed.count == Self.seedBytes else {
      throw AuthorityFolderFailure("use", seedFile, "it does not hold \(Self.seedBytes) bytes")
    }
    self.init(seed: seed, responder: responder)
    try Self.keep(root.der, folder + "/root.der")
    try Self.keep(localCertificate.der, folder + "/xcode.der")
  }

  /// Puts beside them what Apple's played servers and their clients need: `AuthKey_LOCALKEY01.p8` (the API key),
  /// `tls.pem` (the servers' certificate, for who is to trust them) and `tls.key`.
  public func keepServerFiles(in folder: String) throws(AuthorityFolderFailure) -> (certificate: String, key: String) {
    let (certificate, key) = tls
    let paths = (certificate: folder + "/tls.pem", key: folder + "/tls.key")
    try Self.write(Array(certificate.utf8), paths.certificate, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    try Self.write(Array(key.utf8), paths.key, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    let api = folder + "/AuthKey_\(APICredentials.keyID).p8"
    try Self.write(Array(apiCredentials.p8.utf8), api, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    return paths
  }

  /// Writes the RSA root of receipts (`receipt-root.der`) and the certificate that signs Xcode's (`receipt-xcode.der`) into
  /// the authority's folder.
  public func keepReceiptCertificates(folder: String) throws(AuthorityFolderFailure) {
    try Self.keep(receipts.root.der, folder + "/receipt-root.der")
    try Self.keep(receipts.localCertificate.der, folder + "/receipt-xcode.der")
  }

  private static func makeSeed(_ path: String) throws(AuthorityFolderFailure) -> [UInt8] {
    // The system's generator, which is a cryptographic one.
    let seed = (0..<seedBytes).map { _ in UInt8.random(in: 0...255) }
    // Exclusive: of two first uses at once the second finds the file and fails rather than overwrites the first's keys.
    try write(seed, path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    return seed
  }

  private static func keep(_ der: [UInt8], _ path: String) throws(AuthorityFolderFailure) {
    if let old = try read(path) {
      guard old == der else {
        throw AuthorityFolderFailure("use", path, "it is not the certificate of the seed beside it")
      }
      return
    }
    try write(der, path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
  }

  private static func read(_ path: String) throws(AuthorityFolderFailure) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw AuthorityFolderFailure("read", path, errno)
    }
    defer { close(descriptor) }
    // A certificate or a seed: anything longer is not ours, and is told by its content.
    var bytes = [UInt8](repeating: 0, count: 16_384)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    guard count >= 0 else { throw AuthorityFolderFailure("read", path, errno) }
    return Array(bytes[..<count])
  }

  private static func write(
    _ bytes: [UInt8], _ path: String, _ flags: Int32, _ mode: mode_t
  ) throws(AuthorityFolderFailure) {
    let descriptor = open(path, flags | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw AuthorityFolderFailure("write", path, errno) }
    defer { close(descriptor) }
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count, fsync(descriptor) == 0 else {
      throw AuthorityFolderFailure("write", path, errno)
    }
  }
}

/// What went wrong with the folder of an authority.
public struct AuthorityFolderFailure: Error, Sendable, Hashable, CustomStringConvertible {
  public let description: String

  init(_ verb: String, _ path: String, _ reason: String) { description = "cannot \(verb) \(path): \(reason)" }

  init(_ verb: String, _ path: String, _ code: Int32) { self.init(verb, path, String(cString: strerror(code))) }
}
