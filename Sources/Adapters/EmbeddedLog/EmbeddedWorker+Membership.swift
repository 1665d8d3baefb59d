import PurchasesContracts
import PurchasesSQLite

extension EmbeddedWorker {
  /// Compares what this worker holds with what the group's present members say it should hold; answers the change that
  /// the caller has to follow, if there is one.
  func compareMembership() throws -> Polled? {
    while true {
      if isLost {
        let settings = settings
        let now = log.clock.now()
        let epoch = member.epoch
        member = try log.writer.perform { transaction in
          try GroupMember.rejoin(settings, epoch: epoch, at: now, in: transaction)
        }
        isLost = false
        comparedGeneration = -1
      }
      let generation = try cursor.connection.integer(
        "SELECT generation FROM consumer_group WHERE id = ?", .integer(member.group))
      if generation == comparedGeneration { return nil }
      let view = try GroupView.load(of: member, on: cursor.connection)
      guard view.epoch == member.epoch else {
        throw LogFailure(.fenced, "another worker started under the name \(settings.instance)")
      }
      guard view.isMember else {
        isLost = true
        let lost = owned.keys.sorted()
        owned.removeAll()
        if lost.isEmpty { continue }
        return .revoked(lost, lost: true)
      }
      let share = try share(in: view)
      let surplus = owned.filter { !$0.value.isRevoked && share[$0.key] == nil }.keys.sorted()
      if !surplus.isEmpty {
        for partition in surplus { owned[partition]?.isRevoked = true }
        return .revoked(surplus, lost: false)
      }
      // What an earlier start under this name owned is nobody's to let go of but ours: it passed to us with the name, and
      // may be somebody else's share by now.
      let present = member
      let left = view.owners.filter { id, owner in
        owner == settings.instance && !share.values.contains(id) && !owned.values.contains { $0.id == id }
      }.map(\.key)
      if !left.isEmpty {
        try log.writer.perform { transaction in try present.release(left, in: transaction) }
        continue
      }
      let wanted = share.filter {
        owned[$0.key] == nil && (view.owners[$0.value] ?? settings.instance) == settings.instance
      }
      if wanted.isEmpty {
        comparedGeneration = view.generation
        return nil
      }
      let claim = wanted.map(\.value)
      let claimed = try log.writer.perform { transaction in
        try present.claim(claim, seen: view.generation, in: transaction)
      }
      // Somebody came or went in between: look again.
      guard let claimed else { continue }
      member.generation = claimed
      for (partition, id) in wanted { owned[partition] = Position(id: id) }
      return .assigned(wanted.keys.sorted())
    }
  }

  /// The partitions that this worker should hold, with their ids.
  private func share(in view: GroupView) throws -> [TopicPartition: Int64] {
    var share: [TopicPartition: Int64] = [:]
    for topic in settings.topics {
      let info = try log.catalogue.require(topic, on: cursor.connection)
      let members = view.members.filter { $0.topics.contains(info.id) }.map(\.instance)
      let range = RangeAssignment.range(
        of: settings.instance, among: members, partitions: Int32(info.partitions.count))
      for number in range { share[TopicPartition(topic, number)] = info.partitions[Int(number)] }
    }
    return share
  }

  func release(_ partitions: [TopicPartition]) throws(LogFailure) {
    let released = partitions.compactMap { partition in
      owned[partition].flatMap { $0.isRevoked ? $0.id : nil }
    }
    guard !released.isEmpty else { return }
    let member = member
    try log.writer.perform { transaction in try member.release(released, in: transaction) }
    for partition in partitions where owned[partition]?.isRevoked == true { owned[partition] = nil }
  }
}
