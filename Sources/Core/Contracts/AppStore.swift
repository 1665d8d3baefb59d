import PurchasesCore

/// Something that only Apple can tell, which a stage wants to know to decide a record.
public enum AppStoreQuestion: Sendable, Hashable {
  /// Whether a certificate has been revoked. Both in DER; the issuer's key vouches for the answer.
  case revocation(of: [UInt8], issuer: [UInt8])
  /// What the endpoint `verifyReceipt` says of a receipt: base64, as the app sent it.
  case receipt([UInt8])

  /// Looked up for each proof, so not all bytes are hashed: a signature's own bytes stand at the end of a certificate.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .revocation(let certificate, _): hasher.combine(certificate.suffix(Self.hashedBytes))
    case .receipt(let text):
      hasher.combine(text.count)
      hasher.combine(text.suffix(Self.hashedBytes))
    }
  }

  private static let hashedBytes = 32
}

/// An answer as it came, to be judged by who asked: it stands in the evidence, so that the verdict can be judged again
/// without asking.
public struct AppStoreResponse: Sendable, Hashable {
  /// Of an OCSP answer the DER, of `verifyReceipt` the JSON.
  public var body: [UInt8]
  /// When it was given. A kept answer is older than the record that it is used for.
  public var at: Instant
  /// Which of the two App Stores answered, where there are two.
  public var environment: Environment?

  public init(body: [UInt8], at: Instant, environment: Environment? = nil) {
    self.body = body
    self.at = at
    self.environment = environment
  }
}

public enum AppStoreAnswer: Sendable, Hashable {
  case given(AppStoreResponse)
  /// It could not be told: an outage, a time-out, an answer that is none. One sentence, for people.
  case unavailable(String)
}

/// The port to Apple. Whoever implements it bounds each call in time, and keeps what may be kept.
public protocol AppStore: Sendable {
  /// Blocks. Answers each question, if only by saying that it could not be told.
  func answers(to questions: [AppStoreQuestion]) -> [AppStoreQuestion: AppStoreAnswer]
}
