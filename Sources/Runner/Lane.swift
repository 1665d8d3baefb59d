import PurchasesContracts
import PurchasesCore

/// A part of a batch that one core decides: whole partitions, and facts that no other lane asks for. So the outcome is the
/// same as if the batch had been decided record by record.
///
/// `@unchecked Sendable`: a lane is one core's at a time, and what it reads of all lanes' facts does not change meanwhile.
final class Lane<Work: Sendable>: @unchecked Sendable {
  /// In the order of the batch.
  private(set) var works: [Work] = []
  let facts: WorkingSet

  private init(over fetched: FetchedFacts) { facts = WorkingSet(over: fetched) }

  /// Fewer records than this are decided sooner than they are handed out.
  private static var fewest: Int { 256 }
  /// Needs that lead to needs: nothing nests deeper than this.
  private static var maximumRounds: Int { 8 }

  /// Lanes for these works with all their facts; a single one where works of different partitions ask for the same fact, or
  /// a search of the store finds for one what another asks for.
  /// - Parameters:
  ///   - count: of records in a work.
  ///   - needs: what a work asks for, given the facts so far.
  static func lanes(
    of works: [Work], partition: (Work) -> TopicPartition, count: (Work) -> Int, needsDependOnFacts: Bool,
    needs: (Work, WorkingSet) -> [Need], fetch: (Set<Need>) throws -> Fetched
  ) throws -> [Lane] {
    let fetched = FetchedFacts()
    var lanes = split(works, over: fetched, partition: partition, count: count)
    var asked: Set<Need> = []
    for _ in 0..<maximumRounds {
      var missing = lanes.map { lane in
        var missing: Set<Need> = []
        for work in lane.works { lane.facts.unknown(needs(work, lane.facts), into: &missing) }
        return missing
      }
      var all = missing.first ?? []
      for more in missing.dropFirst() { all.formUnion(more) }
      guard !all.isEmpty else { return lanes }
      let found = try fetch(all)
      if lanes.count > 1, !isApart(missing, all, asked) || !isApart(found, missing, asked) {
        let one = Lane(over: fetched)
        one.works = works
        one.facts.know(asked)
        lanes = [one]
        missing = [all]
      }
      fetched.add(found)
      for (lane, missing) in zip(lanes, missing) { lane.facts.know(missing) }
      guard needsDependOnFacts else { return lanes }
      asked.formUnion(all)
      for rows in found.queries.values { asked.formUnion(rows.map { Need.row($0.key) }) }
    }
    preconditionFailure("a stage never stops naming needs")
  }

  private static func isApart(_ missing: [Set<Need>], _ all: Set<Need>, _ asked: Set<Need>) -> Bool {
    guard missing.reduce(0, { $0 + $1.count }) == all.count, asked.isEmpty || all.isDisjoint(with: asked) else {
      return false
    }
    return all.allSatisfy {
      switch $0 {
      case .row, .due, .outdated: true
      // Not of one partition.
      case .watch: false
      }
    }
  }

  /// Whether no lane asks, or has asked, for a row that another one's search found.
  private static func isApart(_ found: Fetched, _ missing: [Set<Need>], _ asked: Set<Need>) -> Bool {
    for (need, rows) in found.queries {
      for row in rows {
        let key = Need.row(row.key)
        if asked.contains(key) || missing.contains(where: { $0.contains(key) && !$0.contains(need) }) { return false }
      }
    }
    return true
  }

  /// Partitions spread over as many lanes as there are cores, the largest first.
  private static func split(
    _ works: [Work], over fetched: FetchedFacts, partition: (Work) -> TopicPartition, count: (Work) -> Int
  ) -> [Lane] {
    var counts: [TopicPartition: Int] = [:]
    for work in works { counts[partition(work), default: 0] += count(work) }
    let total = counts.values.reduce(0, +)
    let lanes = (0..<(total < fewest ? 1 : max(1, min(Cores.count, counts.count)))).map { _ in Lane(over: fetched) }
    guard lanes.count > 1 else {
      lanes[0].works = works
      return lanes
    }
    var loads = Array(repeating: 0, count: lanes.count)
    var place: [TopicPartition: Int] = [:]
    for (partition, count) in counts.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
      let lightest = loads.indices.min { loads[$0] < loads[$1] } ?? 0
      place[partition] = lightest
      loads[lightest] += count
    }
    for work in works { lanes[place[partition(work)] ?? 0].works.append(work) }
    return lanes
  }
}
