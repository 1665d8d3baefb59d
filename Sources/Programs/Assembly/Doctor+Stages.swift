import PurchasesContracts
import PurchasesCore
import PurchasesRunner

/// What the log and the store say of each stage.
extension Doctor {
  /// A stage that runs commits between two questions, which looks as if the two disagreed: asked again, it has gone on.
  private static let looks = 5

  /// How the store's positions and the group's offsets stand to each other, by the rule that the stage recovers by.
  /// - Parameter reader: nil for a stage without state, or where the store can't be reached.
  func standing(
    of stage: StageName, _ topics: [Topic], _ log: any EventLog, _ reader: (any StoreReader)?
  ) -> [Finding] {
    let check = "\(stage.rawValue) offsets"
    let group = deployment.group(stage)
    do {
      var last: Look?
      for _ in 0..<Self.looks {
        let look = try look(at: stage, group, topics, log, reader)
        // Twice the same, with nothing moving between: that is how it is.
        if look.problems.isEmpty || look == last { return findings(look, check, stage, hasStore: reader != nil) }
        last = look
      }
      return [Finding(check, .well, "move on while they are looked at")]
    } catch { return [Finding(check, error)] }
  }

  private struct Look: Hashable {
    var committed: [TopicPartition: Int64] = [:]
    var partitions = 0
    var behindStore: Int64 = 0
    var problems: [String] = []
  }

  /// The offsets are asked before the store and before the log's ends: those only grow in between, so that what was asked
  /// first is never found ahead of what it follows.
  private func look(
    at stage: StageName, _ group: String, _ topics: [Topic], _ log: any EventLog, _ reader: (any StoreReader)?
  ) throws -> Look {
    var look = Look()
    for topic in topics.map(deployment.topics.name) {
      for (number, offset) in try log.committed(group: group, topic: topic) {
        look.committed[TopicPartition(topic, number)] = offset
      }
    }
    let books = try reader?.books(stage: stage.rawValue)
    if let owner = books?.group, owner != group {
      look.problems.append(
        "the store belongs to the group \(owner), not to \(group): give each group a store of its own, or set --group.")
      return look
    }
    for topic in topics.map(deployment.topics.name) {
      for (number, bounds) in try log.bounds(of: topic).sorted(by: { $0.key < $1.key }) {
        look.partitions += 1
        let partition = TopicPartition(topic, number)
        let committed = look.committed[partition]
        let position = books?.positions[partition]?.next
        let lost =
          if let committed {
            Standing.misplaced(partition, group: group, committed: committed, bounds: bounds)
          } else if position == nil {
            Standing.lostBeginning(of: partition, start: bounds.start)
          } else {
            String?.none
          }
        if let lost { look.problems.append(lost) }
        if let position, position > bounds.end {
          look.problems.append(Standing.aheadOfLog(partition, position: position, end: bounds.end))
        }
        guard let books else { continue }
        switch Standing(
          of: partition, group: group, store: position, log: committed, kept: books.kept[partition] ?? [])
        {
        case .level: break
        case .ahead(let next): look.behindStore += next - (committed ?? 0)
        case .inconsistent(let reason): look.problems.append(reason)
        }
      }
    }
    if !stage.hasState || books != nil {
      let positions = books?.positions ?? [:]
      look.problems += try lostOffsets(of: stage, group, topics, log) {
        look.committed[$0] == nil && positions[$0]?.next == nil
      }
    }
    return look
  }

  /// By the rule that the stage itself starts by.
  private func lostOffsets(
    of stage: StageName, _ group: String, _ topics: [Topic], _ log: any EventLog, _ isUnknown: (TopicPartition) -> Bool
  ) throws(LogFailure) -> [String] {
    var without: [TopicPartition] = []
    for topic in topics.map(deployment.topics.name) {
      without += (0..<(try log.partitionCount(of: topic))).map { TopicPartition(topic, $0) }
        .filter(isUnknown)
    }
    let trail = OutputTrail(stage: stage, output: stage.output, topics: deployment.topics, log: log)
    return try trail.positions(of: without).sorted { $0.key < $1.key }
      .map { Standing.lostOffset(of: $0.key, group: group, $0.value, hasState: stage.hasState) }
  }

  private func findings(_ look: Look, _ check: String, _ stage: StageName, hasStore: Bool) -> [Finding] {
    guard look.problems.isEmpty else { return look.problems.map { Finding(check, .wrong, $0) } }
    if look.committed.isEmpty, look.behindStore == 0 { return [Finding(check, .well, "none yet: it has not worked")] }
    let partitions = Self.count(Int64(look.partitions), "partition", "partitions")
    if look.behindStore > 0 {
      let records = Self.count(look.behindStore, "record", "records")
      return [
        Finding(check, .well, "the store is ahead by \(records), which the stage publishes as it goes on or starts")
      ]
    }
    return [
      Finding(check, .well, hasStore ? "log and store agree on \(partitions)" : "the log holds them on \(partitions)")
    ]
  }

  /// How far a stage is behind, and since when.
  func lag(of stage: StageName, _ topics: [Topic], _ progress: GroupProgress) -> Finding {
    let check = "\(stage.rawValue) lag"
    let group = deployment.group(stage)
    do {
      var records: Int64 = 0
      var oldest: Instant?
      for topic in topics {
        // Between an offset and the end there may be nothing but the marks of transactions, or what is not due yet.
        guard let since = try progress.dueSince(group: group, topic: topic, now: now) else { continue }
        oldest = min(oldest ?? since, since)
        records += max(1, try progress.lag(group: group, topic: topic))
      }
      guard let oldest else { return Finding(check, .well, "0 records, nothing waits") }
      let text = "\(Self.count(records, "record", "records")), the oldest waits \(age(oldest))"
      guard isTooOld(oldest) else { return Finding(check, .well, text) }
      return Finding(
        check, .wrong,
        "\(text). Is `purchases stage \(stage.rawValue)` running? Its log and its /readyz say why it stopped or retries."
      )
    } catch { return Finding(check, error) }
  }

  // MARK: what waits in the store for the clock or for people

  /// So many are counted; more than that is as bad.
  private static let countedRows = 1000

  func storeFindings(_ reader: any StoreReader) -> [Finding] {
    [
      overdue(reader, "expiry", .account, "due_at", "account", "accounts", .entitlements),
      overdue(reader, "watchdog", .auditWatch, "look_at", "transaction", "transactions", .auditing),
      escrow(reader),
    ]
  }

  private func overdue(
    _ reader: any StoreReader, _ check: String, _ table: Table, _ column: String, _ one: String, _ many: String,
    _ stage: StageName
  ) -> Finding {
    let limit = now.advanced(byMilliseconds: -Self.patienceMilliseconds).milliseconds
    do {
      let rows = try reader.rows(table, where: column, atMost: limit, limit: Self.countedRows)
      guard let oldest = rows.first?[column].integer else { return Finding(check, .well, "nothing is overdue") }
      let number = rows.count < Self.countedRows ? "" : "at least "
      return Finding(
        check, .wrong,
        "\(number)\(Self.count(Int64(rows.count), one, many)) overdue, \(age(Instant(milliseconds: oldest))). Is `purchases "
          + "stage \(stage.rawValue)` running, and does no stage before it lag?")
    } catch { return Finding(check, error) }
  }

  /// Waiting for an owner is no fault: a claim or a restore ends it.
  private func escrow(_ reader: any StoreReader) -> Finding {
    do {
      let rows = try reader.rows(.chain, where: "unowned_since", atMost: .max, limit: 1)
      guard let oldest = rows.first?["unowned_since"].integer else {
        return Finding("escrow", .well, "no purchase waits for its owner")
      }
      let number = try reader.count(.chain, whereSet: "unowned_since")
      return Finding(
        "escrow", .well,
        "\(Self.count(number, "purchase waits", "purchases wait")) for an owner, the oldest "
          + age(Instant(milliseconds: oldest)))
    } catch { return Finding("escrow", error) }
  }
}
