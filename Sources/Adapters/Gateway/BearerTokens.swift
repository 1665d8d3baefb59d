import PurchasesCryptography
import PurchasesHTTPServer

/// The shared secrets of the back ends, kept as digests: comparing digests takes the same time whatever the guess, and
/// nothing of the secret is left where a dump could show it.
struct BearerTokens: Sendable {
  private let digests: [[UInt8]]

  init(_ tokens: [String]) {
    digests = tokens.map { SHA256.digest(Array($0.utf8)) }
  }

  /// True also when no token is configured: the gateway then listens on a loopback address only.
  func admit(_ request: HTTPRequest) -> Bool {
    if digests.isEmpty { return true }
    let fields = request.headers.all("authorization")
    guard fields.count == 1, let space = fields[0].firstIndex(of: " "),
      fields[0][..<space].lowercased() == "bearer"
    else { return false }
    let given = SHA256.digest(Array(fields[0][space...].dropFirst().utf8))
    // Every digest is compared in full, so that time tells neither which nor how far.
    var admitted = false
    for digest in digests {
      var difference: UInt8 = 0
      for (a, b) in zip(digest, given) { difference |= a ^ b }
      if difference == 0 { admitted = true }
    }
    return admitted
  }
}
