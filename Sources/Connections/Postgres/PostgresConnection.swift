import CPurchasesPostgres
import Glibc
import Synchronization

/// One connection to a PostgreSQL server. Every call blocks its thread until the server has answered.
///
/// Statements are prepared on first use and found again by their text, so SQL texts must be few: values go into
/// parameters. A lost connection stays lost (`PostgresError.isConnectionLost`); to connect again is the owner's affair.
///
/// `@unchecked Sendable`: a PGconn may be used from any thread, but from one at a time; the handle and the cache are
/// reached only under `lock`. A transaction spans several calls, so two threads that share a connection must agree on who
/// is in one; the lock alone does not keep them apart.
public final class PostgresConnection: @unchecked Sendable {
  /// How a connection is made.
  public struct Options: Sendable {
    /// Shown in `pg_stat_activity`.
    public var applicationName: String
    /// Seconds for reaching the server, unless the URL says otherwise.
    public var connectTimeoutSeconds: Int
    /// The server gives up on a statement after this long; 0 for never.
    public var statementTimeoutMilliseconds: Int
    /// The server gives up waiting for a lock after this long; 0 for never.
    public var lockTimeoutMilliseconds: Int
    /// The server ends a transaction that its client leaves idle for this long, so that one that hangs holds no lock.
    public var idleTransactionTimeoutMilliseconds: Int
    /// Further settings of the session, by name.
    public var settings: [(name: String, value: String)]

    public init(
      applicationName: String = "purchases", connectTimeoutSeconds: Int = 10,
      statementTimeoutMilliseconds: Int = 30_000, lockTimeoutMilliseconds: Int = 15_000,
      idleTransactionTimeoutMilliseconds: Int = 60_000, settings: [(name: String, value: String)] = []
    ) {
      self.applicationName = applicationName
      self.connectTimeoutSeconds = connectTimeoutSeconds
      self.statementTimeoutMilliseconds = statementTimeoutMilliseconds
      self.lockTimeoutMilliseconds = lockTimeoutMilliseconds
      self.idleTransactionTimeoutMilliseconds = idleTransactionTimeoutMilliseconds
      self.settings = settings
    }
  }

  struct Session {
    var handle: OpaquePointer?
    var names: [String: String] = [:]
  }

  /// A peer that vanishes without a word (power, network) is noticed after this long, unless the URL says otherwise.
  private static let tcpUserTimeoutMilliseconds = 30_000

  let lock: Mutex<Session>

  /// - Parameter url: `postgres://…` or `postgresql://…` as libpq takes it, or its `key=value` form. What the URL leaves
  ///   out comes from libpq's usual places (`PGPASSWORD`, `~/.pgpass`, …).
  public init(_ url: String, options: Options = Options()) throws(PostgresError) {
    guard Self.isWellFormed(url) else {
      // libpq's own sentence may quote the URL with its password.
      throw PostgresError(
        message: "not a URL that PostgreSQL's client library understands: postgres://USER@HOST/DATABASE")
    }
    // Later entries win over earlier ones: first our defaults, then the URL, then what we can't do without.
    let parameters: [(String, String)] = [
      ("connect_timeout", String(options.connectTimeoutSeconds)),
      ("tcp_user_timeout", String(Self.tcpUserTimeoutMilliseconds)),
      ("application_name", options.applicationName),
      ("dbname", url),
      ("client_encoding", "UTF8"),
    ]
    guard let handle = Self.connect(parameters) else {
      throw PostgresError(message: "out of memory")
    }
    // Without this libpq prints the server's notices on standard error.
    PQsetNoticeProcessor(handle, { _, _ in }, nil)
    guard PQstatus(handle) == CONNECTION_OK else {
      // Says which host and user and why; libpq never puts the password in it.
      let reason = Self.oneLine(PQerrorMessage(handle))
      PQfinish(handle)
      throw PostgresError(isConnectionLost: true, message: reason.isEmpty ? "cannot connect" : reason)
    }
    lock = Mutex(Session(handle: handle))
    var settings = [
      (name: "statement_timeout", value: String(options.statementTimeoutMilliseconds)),
      (name: "lock_timeout", value: String(options.lockTimeoutMilliseconds)),
      (name: "idle_in_transaction_session_timeout", value: String(options.idleTransactionTimeoutMilliseconds)),
    ]
    settings += options.settings
    _ = try query(
      "SELECT set_config(name, value, false) FROM unnest($1::text[], $2::text[]) AS setting(name, value)",
      [.textArray(settings.map(\.name)), .textArray(settings.map(\.value))])
  }

  deinit {
    close()
  }

  /// Ends the session; what it had not committed is undone. Using the connection afterwards fails as lost.
  public func close() {
    lock.withLock { session in
      if let handle = session.handle { PQfinish(handle) }
      session.handle = nil
      session.names = [:]
    }
  }

  /// Whether the connection was whole when it was last used.
  public var isOpen: Bool {
    lock.withLock { session in
      guard let handle = session.handle else { return false }
      return PQstatus(handle) == CONNECTION_OK
    }
  }

  private static func isWellFormed(_ url: String) -> Bool {
    var message: UnsafeMutablePointer<CChar>?
    let parsed = PQconninfoParse(url, &message)
    if let message { PQfreemem(message) }
    guard let parsed else { return false }
    PQconninfoFree(parsed)
    return true
  }

  private static func connect(_ parameters: [(String, String)]) -> OpaquePointer? {
    // libpq wants two parallel arrays of C strings, each closed by NULL; they must live through the call only.
    let names = parameters.map { strdup($0.0) }
    let values = parameters.map { strdup($0.1) }
    defer { for string in names + values { free(string) } }
    let keywords = names.map { UnsafePointer($0) } + [nil]
    let texts = values.map { UnsafePointer($0) } + [nil]
    return PQconnectdbParams(keywords, texts, 1)
  }

  static func oneLine(_ text: UnsafePointer<CChar>?) -> String {
    guard let text else { return "" }
    return String(cString: text).split(whereSeparator: \.isNewline).joined(separator: "; ")
  }
}
