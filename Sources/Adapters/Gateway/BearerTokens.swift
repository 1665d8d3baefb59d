import PurchasesCryptography
import PurchasesHTTPServer

/// The shared secrets of the back ends, kept as digests: comparing digests takes the same time whatever the guess, and
/// nothing of the secret is left where a dump could show it.
struct BearerTokens: Sendable {
  private let digests: [Hash256]

  init(_ tokens: [String]) {
    digests = tokens.map { SHA256.digest($0) }
  }

  /// True also when no token is configured: the gateway then listens on a loopback address only.
  func admit(_ request: HTTPRequest) -> Bool {
    if digests.isEmpty { return true }
    let fields = request.headers.all("authorization")
    guard fields.count == 1, let space = fields[0].firstIndex(of: " "),
      fields[0][..<space].lowercased() == "bearer"
    else { return false }
    let given = SHA256.digest(String(fields[0][space...].dropFirst()))
    // Every digest is compared, and in full, so that time tells neither which nor how far.
    return digests.reduce(false) { ConstantTime.areEqual($1.bytes, given.bytes) || $0 }
  }
}
