import PurchasesContracts
import PurchasesCore
import PurchasesCryptography
import PurchasesJSON
import PurchasesVerification

/// Judges one app receipt without log, store or network: what `purchases verify --receipt` does.
public struct OfflineReceipt {
  private let judge: ProofJudge
  private let receipt: [UInt8]
  private let device: ReceiptDevice?
  private let at: Instant
  private let checksBundle: Bool
  private let answer: AppStoreAnswer?

  /// - Parameter file: base64 text, or the receipt itself as devices keep it.
  public init(_ values: SettingValues, file: [UInt8], device: String?, at: Instant) throws(UsageError) {
    try self.init(values, sent: Self.text(file), device: try device.map(Self.device), at: at)
  }

  static func device(_ text: String) throws(UsageError) -> ReceiptDevice {
    guard let known = DeviceIdentifier(text) else {
      throw UsageError("--device-id: must be a UUID or up to \(DeviceIdentifier.maximumBytes) bytes in hex")
    }
    return .identifier(known)
  }

  /// - Parameters:
  ///   - sent: as the app sent it.
  ///   - accepted: of a recorded verdict: what its deployment took, where nobody says otherwise.
  ///   - answer: what the App Store said of it, where that was recorded.
  init(
    _ values: SettingValues, sent: [UInt8], device: ReceiptDevice?, at: Instant, accepted: AcceptedProofs? = nil,
    answer: AppStoreAnswer? = nil
  ) throws(UsageError) {
    self.at = at
    self.device = device
    self.answer = answer
    receipt = sent
    let environment = try TrustSettings.environment(values)
    let bundles = values.texts(.bundleID)
    checksBundle = !bundles.isEmpty
    // Of which app the receipt says it is, for a check that was not asked for: it is then held against itself.
    let said = Self.bundleID(answer) ?? Self.bundleID(unverified: receipt) ?? "none"
    var apps = (bundles.isEmpty ? [said] : bundles).map { VerificationSettings.App(bundleID: $0, appAppleID: 0) }
    if let accepted, bundles.isEmpty {
      apps = accepted.apps.map { .init(bundleID: $0.bundleID, appAppleID: $0.appAppleID ?? 0) }
    }
    do {
      if let environment, environment.isSignedLocally {
        judge = ProofJudge(
          try VerificationSettings(
            apps: apps, environments: [environment],
            localCertificates: try TrustSettings.localAnchors(values, environment)))
      } else {
        judge = ProofJudge(
          try VerificationSettings(
            apps: apps, receiptAnchors: try TrustSettings.anchors(values) ?? AppleRoots.receipts,
            environments: environment.map { [$0] } ?? accepted?.environments ?? [.production, .sandbox]))
      }
    } catch let error as UsageError { throw error } catch { throw UsageError("\(error)") }
  }

  public func run() -> (outcome: OfflineVerification.Outcome, json: [UInt8]) {
    let verdict = verdict()
    var writer = JSONWriter(reserving: 4096)
    writer.object { OfflineVerification.write(verdict, checksBundle: checksBundle, &$0) }
    return (OfflineVerification.Outcome(verdict), writer.bytes + [0x0a])
  }

  func verdict(revocation: RevocationCheck? = nil) -> Verdict {
    judge.judge(receipt: receipt, device: device, at: at, revocation: revocation, answer: answer)
  }

  /// Whether it is of the oldest kind, which has nothing in it that could be judged here.
  public var isOldest: Bool {
    if case .pending(let proof) = judge.judge(receipt: receipt, at: at) {
      proof.reason == .needsVerifyReceipt
    } else {
      false
    }
  }

  /// The text that a client sends. A sequence of a long or open length is no text.
  static func text(_ file: [UInt8]) -> [UInt8] {
    if file.count > 1, file[0] == BERValue.Tag.sequence, file[1] >= 0x80 { return Array(Base64.encode(file).utf8) }
    return Files.withoutTrailingSpace(file)
  }

  private static func bundleID(_ answer: AppStoreAnswer?) -> String? {
    guard case .given(let response) = answer, let environment = response.environment else { return nil }
    return try? VerifyReceiptAnswer(parsing: response.body, from: environment).bundleID
  }

  private static func bundleID(unverified receipt: [UInt8]) -> String? {
    guard let bytes = Base64.decode(receipt.filter { $0 != 0x0A && $0 != 0x0D }),
      let signed = try? SignedData(parsing: bytes)
    else { return nil }
    return try? AppReceipt(content: signed.content).bundleID
  }
}
