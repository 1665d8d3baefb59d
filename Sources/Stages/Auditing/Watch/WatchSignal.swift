import PurchasesContracts
import PurchasesCore

/// What a record tells the watchdog about a transaction.
enum WatchSignal: Sendable, Hashable {
  case purchased, failed, finished
  case verified, rejected
  case granted

  private static let signals: [Topic: [(prefix: String, signal: WatchSignal)]] = [
    .received: [
      prefixed(.paymentPurchased, .purchased), prefixed(.paymentFinished, .finished), prefixed(.paymentFailed, .failed),
    ],
    .verified: [prefixed(.purchaseVerified, .verified), prefixed(.purchaseRejected, .rejected)],
    .entitlements: [prefixed(.paymentFinishable, .granted)],
  ]

  /// Of any version: an auditor that is older than its pipeline goes on watching.
  private static func prefixed(_ type: EventType, _ signal: WatchSignal) -> (String, WatchSignal) {
    (type.rawValue + ".v", signal)
  }

  /// Looks at two headers only: this runs for every record of the log.
  static func read(_ record: Record, of topic: Topic) -> (signal: WatchSignal, subject: TransactionSubject)? {
    guard let signals = signals[topic], let type = record.header("ce_type"),
      let signal = signals.first(where: { type.starts(with: $0.prefix.utf8) })?.signal,
      let subject = record.headerText("ce_subject").flatMap({ TransactionSubject($0) })
        ?? (topic == .received ? foreign(record) : nil)
    else { return nil }
    return (signal, subject)
  }

  /// A producer that isn't ours may leave the subject out, or have one of its own: then the event itself tells, as it does
  /// to the stage that judges it.
  private static func foreign(_ record: Record) -> TransactionSubject? {
    guard let data = record.value, let type = try? Envelope(reading: record).type,
      let event = try? ReceivedEvent(type: type, fields: Fields(fromOutside: data))
    else { return nil }
    return ReceivedRecord(event, data: data).subject
  }
}
