/// Rules that a log, a store or a worker can be made to break, to see that the simulation notices.
public enum PlantedBug: String, Sendable, CaseIterable {
  /// The store takes a batch under an old epoch.
  case storeIgnoresEpochs
  /// The store writes a batch's rows and not its position, when a connection is lost.
  case storeIsNotAtomic
  /// The store keeps no outgoing records.
  case storeKeepsNothing
  /// The log moves a group's offsets for whoever asks, member or not.
  case logIgnoresMembership
  /// The log ends a transaction of a producer that was replaced.
  case logIgnoresProducerEpochs
  /// The log answers offsets while a transaction that moves them is open.
  case logAnswersUnstableOffsets
  /// The worker says that a commit went through when nobody knows.
  case workerTakesUnknownForCommitted
  /// The worker says that the log stands where the store does, so that nothing is ever recovered.
  case workerSkipsRecovery
  /// The worker reads on behind what it had, wherever it is told to start.
  case workerIgnoresStart
}
