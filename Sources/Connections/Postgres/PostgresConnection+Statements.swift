import CPurchasesPostgres

extension PostgresConnection {
  /// A statement with its parameters, to be sent together with others.
  public struct Step: Sendable {
    public let sql: String
    public let values: [PostgresValue]

    public init(_ sql: String, _ values: [PostgresValue] = []) {
      self.sql = sql
      self.values = values
    }
  }

  /// Runs SQL text as it stands: several statements, separated by semicolons, run as one transaction unless they say
  /// otherwise. For schemas and session control; takes no parameters.
  public func execute(_ sql: String) throws(PostgresError) {
    try locked { (session) throws(PostgresError) in
      let handle = try session.open()
      _ = try PostgresResult.checked(PQexec(handle, sql), on: handle)
    }
  }

  /// Runs one prepared statement.
  @discardableResult
  public func query(_ sql: String, _ values: [PostgresValue] = []) throws(PostgresError) -> PostgresResult {
    try locked { (session) throws(PostgresError) in
      let handle = try session.open()
      let name = try session.prepare(sql, values)
      let result = EncodedParameters(values).withPointers { count, pointers, lengths, formats in
        PQexecPrepared(handle, name, count, pointers, lengths, formats, binaryFormat)
      }
      return try PostgresResult.checked(result, on: handle)
    }
  }

  /// Sends all statements without waiting in between, then reads all answers: one round trip to the server for a whole
  /// batch. After the first that fails none is carried out, and outside a transaction block all of them are undone.
  ///
  /// For statements that answer few rows: the answers wait in the connection's buffers until everything is sent.
  /// - Throws: the first failure; its `step` says which statement it was.
  @discardableResult
  public func pipeline(_ steps: [Step]) throws(PostgresError) -> [PostgresResult] {
    try locked { (session) throws(PostgresError) in
      let handle = try session.open()
      // Preparing is a round trip of its own, but only the first time.
      var names: [String] = []
      names.reserveCapacity(steps.count)
      for step in steps { names.append(try session.prepare(step.sql, step.values)) }

      guard PQenterPipelineMode(handle) == 1 else { throw PostgresError.local(handle) }
      var sent = true
      for (step, name) in zip(steps, names) where sent {
        sent = EncodedParameters(step.values).withPointers { count, pointers, lengths, formats in
          PQsendQueryPrepared(handle, name, count, pointers, lengths, formats, binaryFormat) == 1
        }
      }
      guard sent, PQpipelineSync(handle) == 1 else { throw session.abandon() }
      let outcome = PostgresResult.collect(handle, count: steps.count)
      if PQexitPipelineMode(handle) != 1, PQstatus(handle) == CONNECTION_OK { throw session.abandon() }
      return try outcome.get()
    }
  }

  private func locked<Value: Sendable>(
    _ body: (inout Session) throws(PostgresError) -> Value
  ) throws(PostgresError) -> Value {
    try lock.withLock { (session) throws(PostgresError) in try body(&session) }
  }
}

private let binaryFormat: Int32 = 1

extension PostgresConnection.Session {
  func open() throws(PostgresError) -> OpaquePointer {
    guard let handle, PQstatus(handle) == CONNECTION_OK else {
      throw PostgresError(isConnectionLost: true, message: "the connection to PostgreSQL is closed")
    }
    return handle
  }

  /// Gives up a connection that is stuck half-way through a pipeline: the server undoes what was under way.
  mutating func abandon() -> PostgresError {
    if let handle { PQfinish(handle) }
    self = PostgresConnection.Session(handle: nil)
    return PostgresError(isConnectionLost: true, message: "the connection to PostgreSQL broke in the middle of a batch")
  }

  /// The statement's name at the server, prepared now if it is new. Types are told by the values at hand; nulls leave
  /// theirs to the statement.
  mutating func prepare(_ sql: String, _ values: [PostgresValue]) throws(PostgresError) -> String {
    if let name = names[sql] { return name }
    let handle = try open()
    let name = "p\(names.count + 1)"
    let types = values.map(\.typeID)
    _ = try PostgresResult.checked(PQprepare(handle, name, sql, Int32(types.count), types), on: handle)
    names[sql] = name
    return name
  }
}

extension EncodedParameters {
  fileprivate func withPointers<Value>(
    _ body: (Int32, UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<Int32>, UnsafePointer<Int32>) -> Value
  ) -> Value {
    let formats = [Int32](repeating: binaryFormat, count: offsets.count)
    // An empty value must not look like SQL NULL, which is what a null pointer means: an empty buffer has no address.
    let storage = buffer.isEmpty ? [0] : buffer
    return storage.withUnsafeBufferPointer { bytes in
      bytes.withMemoryRebound(to: CChar.self) { characters in
        let pointers = offsets.map { offset in offset.flatMap { characters.baseAddress?.advanced(by: $0) } }
        return body(Int32(pointers.count), pointers, lengths, formats)
      }
    }
  }
}

extension PostgresResult {
  /// Wraps what libpq answered, or frees it and throws.
  static func checked(_ result: OpaquePointer?, on handle: OpaquePointer) throws(PostgresError) -> PostgresResult {
    guard let result else { throw PostgresError.local(handle) }
    switch PQresultStatus(result) {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY:
      return PostgresResult(result)
    default:
      defer { PQclear(result) }
      throw PostgresError(result, handle)
    }
  }

  /// Reads the answers of a pipeline up to its end, so that the connection is usable afterwards even if one failed.
  fileprivate static func collect(
    _ handle: OpaquePointer, count: Int
  ) -> Result<[PostgresResult], PostgresError> {
    var results: [PostgresResult] = []
    var failure: PostgresError?
    for step in 0..<count {
      while let result = PQgetResult(handle) {
        do {
          results.append(try checked(result, on: handle))
        } catch {
          // Whatever follows the first failure only says that it was not carried out.
          if failure == nil { failure = error.at(step: step) }
        }
      }
    }
    while PQstatus(handle) == CONNECTION_OK, let result = PQgetResult(handle) {
      let status = PQresultStatus(result)
      if status == PGRES_FATAL_ERROR, failure == nil { failure = PostgresError(result, handle) }
      PQclear(result)
      if status == PGRES_PIPELINE_SYNC { break }
    }
    if failure == nil, results.count < count { failure = PostgresError.local(handle) }
    return failure.map { .failure($0) } ?? .success(results)
  }
}

extension PostgresError {
  /// A failure that the server described, or libpq in its place.
  init(_ result: OpaquePointer, _ handle: OpaquePointer) {
    func field(_ code: Character) -> String? {
      guard let value = code.asciiValue, let text = PQresultErrorField(result, Int32(value)) else { return nil }
      return String(cString: text)
    }
    // The letters are those of the wire protocol: C SQLSTATE, n constraint, t table, M the sentence.
    let sqlState = field("C")
    guard let sqlState else {
      self = PostgresError.local(handle)
      return
    }
    let constraint = field("n")
    let table = field("t")
    var message = "PostgreSQL refused the statement (SQLSTATE \(sqlState)"
    if let constraint { message += ", constraint \(constraint)" }
    if let table { message += ", table \(table)" }
    message += ")"
    if Self.mayQuoteServer(sqlState), let sentence = field("M") { message += ": \(sentence)" }
    self.init(
      sqlState: sqlState, constraint: constraint, table: table,
      isConnectionLost: Self.meansConnectionLost(sqlState) || PQstatus(handle) != CONNECTION_OK, message: message)
  }

  /// A failure on our side of the connection: nothing came back from the server.
  static func local(_ handle: OpaquePointer) -> PostgresError {
    let lost = PQstatus(handle) != CONNECTION_OK
    return PostgresError(
      isConnectionLost: lost,
      message: lost
        ? "the connection to PostgreSQL is lost" : "PostgreSQL's client library could not send the statement")
  }

  func at(step: Int) -> PostgresError {
    PostgresError(
      sqlState: sqlState, constraint: constraint, table: table, isConnectionLost: isConnectionLost, step: step,
      message: message)
  }
}
