import PurchasesAuditing
import PurchasesContracts
import PurchasesCore
import PurchasesEntitlements
import PurchasesOwnership
import PurchasesVerification

/// A catalogue with the bytes that it was read from.
public struct CatalogueFile: Sendable {
  public let catalogue: Catalogue
  /// When the file says that it comes into force; nil: as soon as it is handed in.
  public let from: Instant?
  public let document: [UInt8]
  /// Where it was read, and the file as it was then; nil for one that was no file.
  let path: String?
  let print: FilePrint?

  public init(parsing document: [UInt8]) throws(CatalogueFailure) {
    try self.init(parsing: document, path: nil, print: nil)
  }

  init(parsing document: [UInt8], path: String?, print: FilePrint?) throws(CatalogueFailure) {
    let read = try CatalogueDocument(parsing: document)
    catalogue = read.catalogue
    from = read.from
    self.document = document
    self.path = path
    self.print = print
  }
}

/// Makes the stages of a deployment from its settings; each asks only for what it needs.
public struct StageFactory {
  private let values: SettingValues
  private let deployment: Deployment

  public init(_ values: SettingValues, _ deployment: Deployment) {
    self.values = values
    self.deployment = deployment
  }

  public func stages(_ names: [StageName]) throws -> [any Stage] { try names.map(stage) }

  public func stage(_ name: StageName) throws -> any Stage {
    switch name {
    case .verification: return VerificationStage(try TrustSettings(values).verification)
    case .ownership:
      return OwnershipStage(
        OwnershipSettings(
          restorePolicy: try restorePolicy(), restoreDamping: try restoreDamping(),
          environment: try TrustSettings.environment(values) ?? .production))
    case .entitlements: return entitlements(try catalogue())
    case .auditing: return AuditingStage(try AuditKey.settings(values, deployment))
    }
  }

  static let demoOwnership: any Stage = OwnershipStage(OwnershipSettings())

  public func entitlements(_ catalogue: Catalogue) -> any Stage { EntitlementsStage(catalogue: catalogue) }
  public func entitlements(_ history: CatalogueHistory) -> any Stage { EntitlementsStage(history: history) }

  /// The catalogues that the entitlements stage has left in the store, or else those of the log; that of the settings for all
  /// time where it is none of them.
  public func history(or reader: (any StoreReader)?, _ log: CatalogueLog? = nil) throws -> CatalogueHistory {
    var kept = try reader?.catalogueHistory()
    if kept == nil, var log { kept = try log.history() }
    guard let kept else { return CatalogueHistory(try catalogue()) }
    guard values.text(.catalogue) != nil else { return kept }
    let catalogue = try catalogue()
    return kept[catalogue.version]?.catalogue.all == catalogue.all ? kept : CatalogueHistory(catalogue)
  }

  public func catalogue() throws(UsageError) -> Catalogue { try catalogueFile().catalogue }

  public func catalogueFile() throws(UsageError) -> CatalogueFile {
    guard let file = try givenCatalogue() else {
      throw UsageError("--catalogue: is missing: without it no purchase grants anything")
    }
    return file
  }

  /// nil where the settings name none.
  public func givenCatalogue() throws(UsageError) -> CatalogueFile? {
    guard let path = values.text(.catalogue) else { return nil }
    // Before it is read: a change in between is seen as one.
    let print = FilePrint(path)
    let document = try Files.read(path, .catalogue)
    do throws(CatalogueFailure) { return try CatalogueFile(parsing: document, path: path, print: print) } catch {
      throw UsageError("--catalogue \(path): \(error)")
    }
  }

  private func restorePolicy() throws(UsageError) -> RestorePolicy {
    guard let text = values.text(.restorePolicy) else { return .keep }
    guard let policy = RestorePolicy(rawValue: text) else {
      throw UsageError("--restore-policy: must be keep, transfer or share")
    }
    return policy
  }

  private func restoreDamping() throws(UsageError) -> CalendarDuration? {
    let text = values.text(.restoreDamping) ?? Setting.standardDamping
    guard text != "0" else { return nil }
    guard let damping = CalendarDuration(iso8601: text) else {
      throw UsageError("--restore-damping: must be an ISO 8601 duration as P1D or PT12H, or 0 for none")
    }
    return damping
  }
}
