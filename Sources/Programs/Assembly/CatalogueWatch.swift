import Glibc
import PurchasesContracts
import PurchasesCore
import PurchasesEntitlements
import PurchasesRunner

/// Looks for newer catalogues while the stages run: in the file, in the log, where people publish them, and in the store, where
/// other processes leave theirs. What it finds comes into force without a restart. A file that is no catalogue, or one that
/// contradicts what is known, is an alarm, and the catalogue in force goes on.
final class CatalogueWatch: Sendable {
  /// How often it looks: several times within the time that a new catalogue takes to come into force.
  static let pauseMilliseconds: Int64 = 1_000

  private let worker: Worker<Void>

  /// - Parameter source: of the entitlements stage.
  init(
    _ file: CatalogueFile?, _ history: CatalogueHistory, _ deployment: Deployment, log: any EventLog,
    store: any Store, source: StageSource, stop: StopSignal
  ) {
    worker = Worker(name: "catalogue") {
      var look = Look(
        file: file, history: history, deployment: deployment, log: CatalogueLog(log, deployment), store: store,
        source: source)
      while !stop.wait(milliseconds: Self.pauseMilliseconds) { look.again() }
      look.reader?.close()
    }
  }

  static func setRefused(_ isRefused: Bool, _ deployment: Deployment) {
    deployment.metrics.set(
      "purchases_catalogue_refused",
      "1 while a catalogue that was handed in is not taken, and the one before it goes on",
      to: isRefused ? 1 : 0)
  }

  /// The stop was asked for before.
  func wait() { worker.wait() }

  /// What one look leaves to the next.
  private struct Look {
    let path: String?
    /// The file as it was read last.
    var print: FilePrint?
    /// Why the file or a publication is not taken, so that it is told once.
    var refusal: String?
    /// Catalogues that the log had at the last look.
    var published: Int?
    /// The file as it was at the last look.
    var seen: FilePrint?
    var history: CatalogueHistory
    var rows: [Row] = []
    let deployment: Deployment
    var log: CatalogueLog
    let store: any Store
    let source: StageSource
    var reader: (any StoreReader)?
    /// Why the store could not be asked, so that it is told once.
    var failure: String?

    init(
      file: CatalogueFile?, history: CatalogueHistory, deployment: Deployment, log: CatalogueLog, store: any Store,
      source: StageSource
    ) {
      path = file?.path
      print = file?.print
      self.history = history
      self.deployment = deployment
      self.log = log
      self.store = store
      self.source = source
    }

    mutating func again() {
      do {
        do {
          try readFile()
          try readLog()
        } catch let failure as RunnerFailure {
          // Written by a newer program: people must see it, and what the store has still counts.
          refused(failure.description)
        }
        try readStore()
        failure = nil
      } catch {
        // It heals, or the stage itself will say that it doesn't.
        let reason = String(describing: error)
        if reason != failure { deployment.logger.warning("catalogues can't be looked for", ["reason": reason]) }
        failure = reason
        reader?.close()
        reader = nil
      }
    }

    private mutating func readFile() throws {
      guard let path, let now = FilePrint(path), now != print else { return }
      // It may be half written: what stays as it is from one look to the next is read.
      guard now == seen else {
        seen = now
        return
      }
      do {
        let file = try CatalogueReading.file(path)
        try keep(file)
        refused(nil)
      } catch let error as UsageError {
        refused(error.description)
      } catch let error as SupersededCatalogue { refused(error.description) }
      print = now
    }

    private mutating func readLog() throws {
      let count = try log.published().count
      guard count != published else { return }
      do {
        try keep(nil)
        if path == nil { refused(nil) }
      } catch let error as UsageError { refused(error.description) }
      // Only now: what the store could not take is tried again.
      published = count
    }

    /// Handed over with what the store says.
    private mutating func keep(_ file: CatalogueFile?) throws {
      _ = try KeptCatalogue.keep(
        file, clock: deployment.clock, lead: KeptCatalogue.leadMilliseconds, in: store,
        group: deployment.group(.entitlements), &log)
    }

    /// People must see it: what they meant to sell, or to give, is not in force.
    private mutating func refused(_ reason: String?) {
      CatalogueWatch.setRefused(reason != nil, deployment)
      let isNew = reason != refusal
      refusal = reason
      guard let reason, isNew else { return }
      deployment.logger.error("catalogue refused; the one in force goes on", ["reason": reason])
    }

    private mutating func readStore() throws {
      let open: any StoreReader
      if let reader { open = reader } else { open = try store.reader() }
      reader = open
      let rows = try open.rows(.catalogue, prefix: [], after: nil, limit: CatalogueWatch.maximumVersions)
      guard rows != self.rows, let kept = try open.catalogueHistory() else { return }
      let isFirst = self.rows.isEmpty
      self.rows = rows
      // The first look finds what the start found, as a rule.
      guard !isFirst || kept != history else { return }
      history = kept
      source.replace(by: EntitlementsStage(history: kept))
      deployment.logger.info(
        "catalogue", ["version": kept.newest.version, "from": kept.versions.last?.from.description ?? ""])
    }
  }

  /// More than anybody has: a change among the first of them is seen.
  private static let maximumVersions = 100_000
}

/// What tells one state of a file from the next without reading it.
struct FilePrint: Sendable, Hashable {
  private let seconds: Int
  private let nanoseconds: Int
  private let bytes: Int
  private let inode: UInt

  /// nil for a file that isn't there, as while it is being replaced.
  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    seconds = status.st_mtim.tv_sec
    nanoseconds = status.st_mtim.tv_nsec
    bytes = Int(status.st_size)
    inode = UInt(status.st_ino)
  }
}
