import PurchasesCore
import PurchasesCryptography

extension LocalAuthority {
  /// A certificate and key for `localhost` and `127.0.0.1`, in PEM. The certificate signs itself: who is to trust the local
  /// servers is given it as CA file.
  public var tls: (certificate: String, key: String) {
    let key = P256PrivateKey(seed: authority.leafKey.der, label: "tls").key
    var builder = CertificateBuilder(
      subject: [("CN", "Local App Store")], serial: [9], notBefore: Self.validFrom.milliseconds,
      notAfter: Self.validThrough.milliseconds, isCA: true, keyUsage: [.digitalSignature, .certificateSign])
    builder.hosts = [.name("localhost"), .address(127, 0, 0, 1)]
    return (PEM.encode(builder.selfSigned(key: key).der, label: "CERTIFICATE"), key.pem)
  }
}
