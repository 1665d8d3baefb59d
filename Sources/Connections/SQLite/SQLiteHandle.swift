import CPurchasesSQLite
import Synchronization

/// Owner of one `sqlite3 *`. Connection and statements share it, so that the handle outlives every statement made from it.
///
/// `@unchecked Sendable`: the pointer is opened in SQLite's multi-thread mode, which allows any thread as long as only one
/// is inside at a time. That is the contract of ``SQLiteConnection``; debug builds check it in `exclusively`. `interrupt`
/// is the one call SQLite allows from elsewhere, and the lock keeps it apart from `close`.
final class SQLiteHandle: @unchecked Sendable {
  private var database: OpaquePointer?
  private let path: String
  private let lifetime = Mutex<Void>(())
  #if DEBUG
    private let inside = Atomic<Bool>(false)
  #endif

  init(path: String, flags: Int32) throws(SQLiteError) {
    self.path = path
    var opened: OpaquePointer?
    let result = sqlite3_open_v2(path, &opened, flags, nil)
    guard result == SQLITE_OK, let opened else {
      let message = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
      let code = opened.map { sqlite3_extended_errcode($0) } ?? result
      sqlite3_close_v2(opened)
      throw SQLiteError(extendedCode: code, message: "cannot be opened: \(message)", path: path)
    }
    sqlite3_extended_result_codes(opened, 1)
    database = opened
  }

  deinit { sqlite3_close_v2(database) }

  var pointer: OpaquePointer {
    guard let database else { preconditionFailure("a closed SQLite connection was used") }
    return database
  }

  var isOpen: Bool { database != nil }

  func close() {
    lifetime.withLock { _ in
      sqlite3_close_v2(database)
      database = nil
    }
  }

  func interrupt() {
    lifetime.withLock { _ in
      if let database { sqlite3_interrupt(database) }
    }
  }

  /// Traps in debug builds when two threads are inside the same connection at once.
  @inline(__always)
  func exclusively<T>(_ body: () -> T) -> T {
    #if DEBUG
      precondition(!inside.exchange(true, ordering: .acquiring), "two threads use one SQLite connection at once")
      defer { inside.store(false, ordering: .releasing) }
    #endif
    return body()
  }

  func failure(_ result: Int32) -> SQLiteError {
    guard let database else {
      return SQLiteError(extendedCode: result, message: "the connection is closed", path: path)
    }
    return SQLiteError(extendedCode: result, message: String(cString: sqlite3_errmsg(database)), path: path)
  }

  func check(_ result: Int32) throws(SQLiteError) {
    if result != SQLITE_OK { throw failure(result) }
  }
}
