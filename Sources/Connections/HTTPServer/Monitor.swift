import Glibc

/// A state under a lock that threads can wait on. Synchronization.Mutex has no condition to wait for, and a stop must
/// sleep until the last request is answered.
///
/// `@unchecked Sendable`: the state is touched only while the pthread mutex is held, and both pthread objects live at
/// addresses of their own from init to deinit.
final class Monitor<State>: @unchecked Sendable {
  private var state: State
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init(_ state: sending State) {
    self.state = state
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    // Waits are measured on the clock that a change of date doesn't move.
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

  /// Runs `body` with the state and wakes every waiter.
  @discardableResult
  func change<Result>(_ body: (inout State) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer {
      pthread_cond_broadcast(condition)
      pthread_mutex_unlock(mutex)
    }
    return body(&state)
  }

  /// Waits until `done` holds or the monotonic clock reaches `deadline` (seconds); answers whether it holds.
  func wait(until deadline: Double, for done: (State) -> Bool) -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    var time = timespec()
    time.tv_sec = Int(deadline)
    time.tv_nsec = Int((deadline - deadline.rounded(.down)) * 1e9)
    while !done(state) {
      if pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT { return done(state) }
    }
    return true
  }
}

/// Seconds on the clock that never goes back.
func monotonicSeconds() -> Double {
  var now = timespec()
  clock_gettime(CLOCK_MONOTONIC, &now)
  return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
}

/// Runs `body` on a thread of its own that nobody joins. False when the system gives no thread.
func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
  final class Box {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  defer { pthread_attr_destroy(&attributes) }
  pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
  let box = Unmanaged.passRetained(Box(body))
  var thread = pthread_t()
  let code = pthread_create(
    &thread, &attributes,
    { context in
      guard let context else { return nil }
      Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body()
      return nil
    }, box.toOpaque())
  if code != 0 { box.release() }
  return code == 0
}
