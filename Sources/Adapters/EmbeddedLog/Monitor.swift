import Glibc

/// A value behind a lock that threads can wait on. `Synchronization.Mutex` has no condition variable, and the log's threads
/// have to sleep until there is work.
///
/// `@unchecked Sendable`: the value is only reached with the lock held, and the lock and condition never move because
/// they are allocated once and freed with the object.
final class Monitor<Value>: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var value: Value

  init(_ value: sending Value) {
    self.value = value
    mutex = .allocate(capacity: 1)
    condition = .allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    // Waits must not stretch or end early when somebody sets the wall clock.
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  func read<T>(_ body: (inout Value) -> T) -> T {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&value)
  }

  /// Changes the value and wakes every waiter.
  func update<T>(_ body: (inout Value) -> T) -> T {
    pthread_mutex_lock(mutex)
    defer {
      pthread_cond_broadcast(condition)
      pthread_mutex_unlock(mutex)
    }
    return body(&value)
  }

  /// Waits until the body answers something; nil once the deadline (on ``MonotonicTime``) has passed.
  func wait<T>(until deadline: MonotonicTime? = nil, _ body: (inout Value) -> T?) -> T? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let answer = body(&value) { return answer }
      guard let deadline else {
        pthread_cond_wait(condition, mutex)
        continue
      }
      if MonotonicTime.now >= deadline { return nil }
      var until = deadline.timespec
      pthread_cond_timedwait(condition, mutex, &until)
    }
  }
}

/// Nanoseconds on a clock that never jumps: for waits, never for data.
struct MonotonicTime: Comparable {
  let nanoseconds: Int64

  static var now: MonotonicTime {
    var time = Glibc.timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return MonotonicTime(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
  }

  func advanced(byMilliseconds delta: Int64) -> MonotonicTime {
    let (scaled, overflow) = max(0, delta).multipliedReportingOverflow(by: 1_000_000)
    let (sum, overflowed) = nanoseconds.addingReportingOverflow(scaled)
    return MonotonicTime(nanoseconds: overflow || overflowed ? .max : sum)
  }

  var timespec: Glibc.timespec {
    Glibc.timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
  }

  static func < (a: MonotonicTime, b: MonotonicTime) -> Bool { a.nanoseconds < b.nanoseconds }
}

/// An operating-system thread: what blocks on the disk must not sit on Swift's cooperative pool.
///
/// `@unchecked Sendable`: the identifier is written once, before anybody else can see the object.
final class WorkThread: @unchecked Sendable {
  private var identifier = pthread_t()

  /// - Returns: nil when the system has no thread to give.
  init?(_ body: @escaping @Sendable () -> Void) {
    let box = Unmanaged.passRetained(Body(run: body))
    let result = pthread_create(
      &identifier, nil,
      { raw in
        guard let raw else { return nil }
        Unmanaged<Body>.fromOpaque(raw).takeRetainedValue().run()
        return nil
      }, box.toOpaque())
    if result != 0 {
      box.release()
      return nil
    }
  }

  var isCurrent: Bool { pthread_equal(identifier, pthread_self()) != 0 }

  /// Waits for the thread to end. Either this or `detach` is called, once.
  func join() { pthread_join(identifier, nil) }

  /// Leaves it to the thread to clean up after itself.
  func detach() { pthread_detach(identifier) }

  private final class Body {
    let run: @Sendable () -> Void
    init(run: @escaping @Sendable () -> Void) { self.run = run }
  }
}
