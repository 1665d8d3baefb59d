import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// Judges one signed proof. Total and without I/O: the same proof, settings and time give the same verdict, whenever
/// and wherever they are asked for.
public struct ProofJudge: Sendable {
  public let settings: VerificationSettings
  private let cache: ChainCache

  public init(_ settings: VerificationSettings) {
    self.settings = settings
    cache = ChainCache(anchors: settings.anchors)
  }

  /// - Parameters:
  ///   - proof: a compact JWS.
  ///   - expected: the kind that belongs where the proof was sent; nil takes any.
  ///   - source: who brought it; it stands in the verified parts.
  ///   - at: the record's time. It only decides what lies in the future; certificates are judged by the proof's own date.
  ///   - revocation: what is known of it; nil where nobody was asked.
  public func judge(
    _ proof: [UInt8], expecting expected: ProofKind? = nil, source: RevisionSource = .client, at: Instant,
    revocation: RevocationCheck? = nil
  ) -> Verdict {
    let asked = Asked(source: source, at: at, revocation: revocation)
    var evidence = Evidence(judgedAt: at)
    do throws(Halt) {
      let opened = try open(proof, asked, evidence: &evidence)
      return .verified(try verified(opened, expecting: expected, asked, evidence: &evidence))
    } catch { return ended(error, evidence) }
  }

  func ended(_ halt: Halt, _ evidence: Evidence) -> Verdict {
    var evidence = evidence
    switch halt {
    case .refused(let reason, let field):
      if reason.isOfSettings { evidence.accepted = settings.accepted.json }
      let explanation = field.map { "\(reason.explanation.dropLast()): \($0)." } ?? reason.explanation
      return .rejected(
        RejectedProof(
          reason: reason, field: field, digest: evidence.proof, explanation: explanation, evidence: evidence.json))
    case .waiting(let reason, let until):
      return .pending(PendingProof(reason: reason, until: until, digest: evidence.proof, evidence: evidence.json))
    }
  }

  public func judge(
    _ proof: String, expecting expected: ProofKind? = nil, source: RevisionSource = .client, at: Instant,
    revocation: RevocationCheck? = nil
  ) -> Verdict {
    judge(Array(proof.utf8), expecting: expected, source: source, at: at, revocation: revocation)
  }

  /// The circumstances of a judgement: the same for a notification and the proofs inside it.
  struct Asked {
    let source: RevisionSource
    let at: Instant
    let revocation: RevocationCheck?
  }

  /// A proof whose signature was found good under a chain that is trusted in some time: the payload may be read now.
  struct Opened {
    let digest: String
    let payload: [UInt8]
    let root: JSONView
    let chain: JudgedChain
    /// Signed by a certificate of the deployment's own, which only Xcode and local testing have.
    let isLocal: Bool
  }

  /// Everything up to the signature. Of the payload nothing is read before that.
  func open(_ proof: [UInt8], _ asked: Asked, evidence: inout Evidence) throws(Halt) -> Opened {
    let jws: CompactJWS
    let result: Result<ChainCache.Inspected, ChainFailure>
    let presented: [[UInt8]]
    do throws(Halt) {
      do throws(JWSFailure) { jws = try CompactJWS.split(proof) } catch { throw .refused(.jws(error), field: nil) }
      (result, presented) = try inspect(jws)
    } catch {
      evidence.proof = SHA256.digest(proof).hex
      throw error
    }
    let chain: JudgedChain
    let signed: Hash256
    var isLocal = false
    switch result {
    case .success(let inspected):
      chain = inspected.chain
      let digests = jws.digests(inspected.beginning)
      signed = digests.signed
      evidence.proof = digests.whole.hex
    case .failure(let failure):
      evidence.proof = SHA256.digest(proof).hex
      guard let local = localChain(presented) else { throw .refused(.chain(failure), field: nil) }
      chain = try local.mapError { Halt.refused(.chain($0), field: nil) }.get()
      signed = SHA256.digest(jws.signingInput)
      isLocal = true
    }
    guard jws.isSigned(by: chain.leafKey, digest: signed) else {
      throw .refused(.jws(.signatureInvalid), field: nil)
    }
    evidence.chain = chain
    try checkRevocation(of: chain, asked, evidence: &evidence)
    let document: JSONDocument
    do { document = try JSONDocument(parsing: jws.payload) } catch { throw .claim(.payloadNotJSON) }
    guard document.root.kind == .object else { throw .claim(.payloadNotJSON) }
    guard document.firstDuplicateMember() == nil else { throw .claim(.payloadDuplicateMember) }
    return Opened(digest: evidence.proof, payload: jws.payload, root: document.root, chain: chain, isLocal: isLocal)
  }

  /// The chain that a header carries, and its certificates where they had to be read.
  func inspect(_ jws: CompactJWS) throws(Halt) -> (Result<ChainCache.Inspected, ChainFailure>, presented: [[UInt8]]) {
    var presented: [[UInt8]] = []
    let result = try cache.inspect(header: jws.headerSegment) { () throws(Halt) -> [[UInt8]] in
      do throws(JWSFailure) {
        presented = try JWSHeader.chain(of: jws.header)
        return presented
      } catch { throw .refused(.jws(error), field: nil) }
    }
    return (result, presented)
  }

  /// Where the deployment takes local certificates, a chain of one is judged by them and nothing else.
  private func localChain(_ presented: [[UInt8]]) -> Result<JudgedChain, ChainFailure>? {
    guard let pinned = settings.localCertificates, presented.count == 1 else { return nil }
    guard let certificate = pinned.certificates.first(where: { $0.der == presented[0] }) else {
      return .failure(.notConfigured)
    }
    // Its dates are held against the proof's later, with everybody else's.
    return ChainPolicy.judge(x5c: presented, pinned: pinned, at: certificate.notBefore)
  }
}

/// The header of a JWS as StoreKit writes it.
enum JWSHeader {
  /// The certificates, in the order they came.
  static func chain(of header: [UInt8]) throws(JWSFailure) -> [[UInt8]] {
    let document: JSONDocument
    do { document = try JSONDocument(parsing: header) } catch { throw .headerNotJSON }
    guard document.root.kind == .object else { throw .headerNotJSON }
    guard document.firstDuplicateMember() == nil else { throw .headerDuplicateMember }
    guard document.root["alg"]?.isString("ES256") == true else { throw .algorithmNotES256 }
    guard document.root["crit"] == nil else { throw .criticalHeader }
    guard let chain = document.root["x5c"], !chain.isNull else { throw .chainAbsent }
    guard chain.kind == .array else { throw .chainNotStrings }
    guard chain.count > 0 else { throw .chainEmpty }
    var certificates: [[UInt8]] = []
    for element in chain.elements {
      guard let text = element.utf8 else { throw .chainNotStrings }
      guard !text.isEmpty, let der = Base64.decode(text) else { throw .chainNotBase64 }
      certificates.append(der)
    }
    return certificates
  }
}
