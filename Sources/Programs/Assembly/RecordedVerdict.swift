import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON

/// A verdict that stands in the log, held against what its proof gets when it is judged again: with the time, the rules and the
/// recorded answers of its evidence, and nobody asked.
public struct RecordedVerdict {
  /// The event's data.
  let event: JSONView
  let evidence: JSONView
  /// The record as `purchases tail` prints it, where that was given.
  let line: JSONView?

  /// - Parameter file: the data of a `purchase.verified` or `purchase.rejected` event, or an object that
  ///   holds it as `data`, or as `value` as `purchases tail` prints it.
  public init(file: [UInt8]) throws(UsageError) {
    let root: JSONView
    do { root = try JSONDocument(parsing: file).root } catch { throw UsageError("--verdict: is not JSON: \(error)") }
    let data = [root["data"], root["value"]].compactMap { $0 }.first { $0.kind == .object } ?? root
    guard data["nextTry"] == nil else {
      throw UsageError("--verdict: is a pending one, which is no verdict yet: there is nothing to judge again")
    }
    guard let evidence = data["evidence"], evidence.kind == .object, evidence["proof"]?.string != nil,
      evidence["judgedAt"]?.int64 != nil
    else { throw UsageError("--verdict: holds no evidence: it must be a purchase.verified or purchase.rejected event") }
    event = data
    self.evidence = evidence
    line = root["headers"]?.kind == .array ? root : nil
  }

  /// The code of the list in `docs/verdicts.md`, or `verified`.
  var code: String { event["reason"]?.string ?? "verified" }
  var judgedAt: Instant { Instant(milliseconds: evidence["judgedAt"]?.int64 ?? 0) }

  /// Whether the proof is a receipt, and no JWS.
  public var isOfReceipt: Bool { evidence["verifier"]?.string?.hasPrefix("purchases-receipt/") ?? false }

  func isProof(_ bytes: [UInt8]) -> Bool { SHA256.digest(bytes).hex == evidence["proof"]?.string }

  /// The proof as its evidence carries it.
  public var carriedProof: [UInt8]? { evidence["proofText"]?.utf8 }

  /// Why it carries none.
  public var whyNotCarried: String {
    evidence["proofNotCarried"]?.string ?? "it was written by a version that did not carry it"
  }

  /// The proof that a file holds: what was sent stands in it as it is, with a newline behind it, or in the bytes that base64
  /// was made of.
  public func proof(file: [UInt8]) -> [UInt8] {
    let trimmed = Files.withoutTrailingSpace(file)
    guard isOfReceipt else { return isProof(file) ? file : trimmed }
    return [file, trimmed].first { isProof($0) } ?? OfflineReceipt.text(file)
  }

  /// The record that the verdict is on; only what `purchases tail` prints names it.
  var origin: Coordinates? {
    guard let line else { return nil }
    var headers: [String: String] = [:]
    for header in line["headers"]?.elements ?? [] {
      if let name = header["name"]?.string, let value = header["value"]?.string { headers[name] = value }
    }
    guard let topic = headers["ce_origintopic"], let partition = headers["ce_originpartition"].flatMap({ Int32($0) }),
      let offset = headers["ce_originoffset"].flatMap({ Int64($0) })
    else { return nil }
    return Coordinates(topic: topic, partition: partition, offset: offset)
  }

  /// The proof as the record holds it that the verdict is on; nil where that is not in the log, or another.
  public func proof(in deployment: Deployment) throws -> [UInt8]? {
    guard let origin, deployment.logIsThere else { return nil }
    let log = try deployment.openLog()
    defer { log.close() }
    let reader = try log.reader()
    defer { reader.close() }
    guard let stored = try reader.read(origin.topicPartition, from: origin.offset, max: 1).first,
      stored.coordinates == origin, let value = stored.record.value,
      let type = (try? Envelope(reading: stored.record))?.type,
      let event = try? ReceivedEvent(type: type, data: value)
    else { return nil }
    let texts: [String?] =
      switch event {
      case .payment(let payment): [payment.signedTransaction, payment.appReceipt]
      case .notified(let notified): [notified.signedPayload]
      default: []
      }
    return texts.compactMap { $0.map { Array($0.utf8) } }.first { isProof($0) }
  }
}
