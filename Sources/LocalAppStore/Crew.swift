import Glibc
import Synchronization

/// Threads of our own for work that blocks: Swift's cooperative pool must not wait for HTTP.
enum Crew {
  /// Does each of `count` pieces once, on so many threads, and returns when all are done.
  static func work(_ count: Int, threads: Int, _ piece: @escaping @Sendable (Int) -> Void) {
    guard count > 0 else { return }
    let next = Job()
    var started: [pthread_t] = []
    for _ in 0..<min(count, max(1, threads)) {
      if let thread = start({ while let index = next.take(below: count) { piece(index) } }) { started.append(thread) }
    }
    // Where the system gives no thread, the work is done here.
    if started.isEmpty { while let index = next.take(below: count) { piece(index) } }
    for thread in started { pthread_join(thread, nil) }
  }

  /// Starts a thread that nobody waits for.
  static func detach(_ body: @escaping @Sendable () -> Void) -> Bool {
    guard let thread = start(body) else { return false }
    pthread_detach(thread)
    return true
  }

  private final class Job: Sendable {
    private let next = Atomic(0)

    func take(below count: Int) -> Int? {
      let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
      return index < count ? index : nil
    }
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private static func start(_ body: @escaping @Sendable () -> Void) -> pthread_t? {
    let box = Unmanaged.passRetained(Body(body))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, box.toOpaque())
    guard code == 0 else {
      box.release()
      return nil
    }
    return thread
  }
}
