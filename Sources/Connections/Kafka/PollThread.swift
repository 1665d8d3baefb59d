import CPurchasesKafka
import Glibc
import Synchronization

/// A thread of its own that serves the main queue of a client: delivery reports and errors. Swift's cooperative pool is
/// never blocked by it.
///
/// `@unchecked Sendable`: the thread's id is written before the object is shared and read once, in `stop`, behind the
/// atomic exchange. The queue is librdkafka's and safe to use from any thread.
final class PollThread: @unchecked Sendable {
  private let client: Client
  private let queue: OpaquePointer
  private let handle: @Sendable (OpaquePointer) -> Void
  private let stopping = Atomic<Bool>(false)
  private let mailbox = Mutex<Mailbox>(Mailbox())
  private var thread = pthread_t()

  private struct Mailbox {
    var mail: [@Sendable () -> Void] = []
    var isOpen = true
  }

  // Only a missed wake-up is waited for this long; events wake the thread at once.
  private static let pauseMilliseconds: Int32 = 1000

  init(_ client: Client, handle: @escaping @Sendable (OpaquePointer) -> Void) {
    guard let queue = rd_kafka_queue_get_main(client.pointer) else { preconditionFailure("no main queue") }
    self.client = client
    self.queue = queue
    self.handle = handle
    let box = Unmanaged.passRetained(self)
    let outcome = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<PollThread>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, box.toOpaque())
    precondition(outcome == 0, "no thread for Kafka's events: \(outcome)")
  }

  /// For a client that is only asked questions: notes the errors that it reports aside from them.
  convenience init(noting client: Client) {
    self.init(client) { [weak client] event in
      if rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR { _ = client?.note(event) }
    }
  }

  deinit { rd_kafka_queue_destroy(queue) }

  private func run() {
    while !stopping.load(ordering: .acquiring) {
      if let event = rd_kafka_queue_poll(queue, PollThread.pauseMilliseconds) {
        handle(event)
        rd_kafka_event_destroy(event)
      }
      runMail()
    }
    // What was reported up to here is still handed on.
    while let event = rd_kafka_queue_poll(queue, 0) {
      handle(event)
      rd_kafka_event_destroy(event)
    }
    runMail(last: true)
  }

  private func runMail(last: Bool = false) {
    let mail = mailbox.withLock { mailbox in
      defer { mailbox.mail = [] }
      if last { mailbox.isOpen = false }
      return mailbox.mail
    }
    for work in mail { work() }
  }

  /// Runs something on this thread, after what has been reported so far. False when the thread has ended.
  func run(_ work: @escaping @Sendable () -> Void) -> Bool {
    let taken = mailbox.withLock { mailbox in
      if mailbox.isOpen { mailbox.mail.append(work) }
      return mailbox.isOpen
    }
    if taken { rd_kafka_queue_yield(queue) }
    return taken
  }

  var isCurrent: Bool { pthread_equal(pthread_self(), thread) != 0 }

  /// Ends the thread; returns when it has ended. Safe to call more than once, and from the thread itself, which then
  /// ends when its handler returns.
  func stop() {
    guard !stopping.exchange(true, ordering: .acquiringAndReleasing) else { return }
    rd_kafka_queue_yield(queue)
    if isCurrent {
      pthread_detach(thread)
    } else {
      pthread_join(thread, nil)
    }
  }
}
