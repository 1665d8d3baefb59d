import Glibc

/// Keeps one writer of a file from starving the others.
///
/// SQLite's lock goes to whoever asks at the right moment. A writer that begins its next transaction as soon as it has
/// ended one is nearly always that one, while the others sleep for up to 100 ms between two attempts. So a writer that has
/// to wait says so, by a shared lock on the first byte of a file beside the database, and asks often; and a writer that is
/// about to begin again lets go for a moment when it sees that somebody waits. Nothing depends on it: a process that is
/// killed loses its lock, and one that is stopped while it waits costs the others a millisecond per transaction.
///
/// `@unchecked Sendable`: used under the connection's contract of one thread at a time; the descriptor never changes.
final class WriteTurn: @unchecked Sendable {
  private let descriptor: Int32
  private var hasWritten = false

  /// How often a waiting writer asks: short beside a synced commit.
  static let attemptMicroseconds: UInt32 = 500
  /// How long a writer holds back for one that waits: two of its attempts.
  private static let courtesyMicroseconds: UInt32 = 1_000
  // Locks of an open file rather than of a process: a process may have the same database open more than once. The names
  // are GNU extensions of <fcntl.h> that Swift does not always see.
  private static let getLock: Int32 = 36
  private static let setLock: Int32 = 37

  /// - Returns: nil where the file can't be made; then writers take their chances.
  init?(beside path: String) {
    descriptor = open(path + "-turn", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
    if descriptor < 0 { return nil }
  }

  deinit { _ = Glibc.close(descriptor) }

  private static func lock(_ type: Int32) -> flock {
    var lock = flock()
    lock.l_type = Int16(type)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = 0
    lock.l_len = 1
    return lock
  }

  func beginWaiting() {
    var lock = Self.lock(F_RDLCK)
    _ = fcntl(descriptor, Self.setLock, &lock)
  }

  func endWaiting() {
    var lock = Self.lock(F_UNLCK)
    _ = fcntl(descriptor, Self.setLock, &lock)
  }

  /// Called before a transaction: holds back once if this writer had the last turn and another one waits.
  func letOthersGoFirst() {
    guard hasWritten else { return }
    hasWritten = false
    var lock = Self.lock(F_WRLCK)
    guard fcntl(descriptor, Self.getLock, &lock) == 0, lock.l_type != Int16(F_UNLCK) else { return }
    usleep(Self.courtesyMicroseconds)
  }

  func hadTurn() { hasWritten = true }
}
