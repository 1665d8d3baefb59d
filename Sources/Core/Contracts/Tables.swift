/// The tables of the store. Both adapters' migrations create them with these columns; a test holds them to it.
extension Table {
  /// A chain (one purchase with its renewals and restores) and its one owner: the primary key is what makes it one.
  public static let chain = Table(
    "chain", key: [Column("environment", .text), Column("original_transaction", .text)],
    columns: [
      // Null while nobody owns it (escrow).
      Column("account", .text, optional: true),
      // token, claim, order or none.
      Column("basis", .text),
      // When the first revision without an owner came in, in log time; null once owned.
      Column("unowned_since", .integer, optional: true),
      // Newest revisions, claims and decisions: JSON.
      Column("document", .bytes),
    ])

  /// Catalogues that the entitlements stage has worked by, so that readers of the store need no file.
  public static let catalogue = Table(
    "catalogue", key: [Column("version", .text)],
    columns: [
      // When a stage was given it first (in version 1 of the store: last), by the clock on the wall: epoch milliseconds.
      Column("kept_at", .integer), Column("document", .bytes),
      // Log time from which on it is in force, in epoch milliseconds; null: kept_at. The first one's holds for what came
      // before, too.
      Column("valid_from", .integer, optional: true),
    ])

  /// Accounts merged into others.
  public static let alias = Table(
    "alias", key: [Column("environment", .text), Column("account", .text)], columns: [Column("into_account", .text)])

  /// Notifications by Apple's UUID: the first body wins.
  public static let notification = Table(
    "notification", key: [Column("environment", .text), Column("uuid", .text)],
    columns: [Column("digest", .text), Column("topic_offset", .text)])

  /// One row per account: the fold's state.
  public static let account = Table(
    "account", key: [Column("environment", .text), Column("account", .text)],
    columns: [
      // The partition of `owned` that its events come through.
      Column("partition", .integer),
      // Counts the account's events in the topic `entitlements`, from 1, without a gap.
      Column("version", .integer),
      // The next instant at which access changes by time alone; null while there is none.
      Column("due_at", .integer, optional: true),
      // 1 while a purchase waits for a product that the catalogue doesn't know.
      Column("waiting", .integer),
      Column("catalogue_version", .text),
      // The facts that the state is computed from: JSON.
      Column("document", .bytes),
    ])

  /// What an account may use now, as published: for people and services that share the database.
  public static let entitlement = Table(
    "entitlement",
    key: [Column("environment", .text), Column("account", .text), Column("entitlement", .text)],
    columns: [
      Column("active", .integer),
      // Epoch milliseconds; null: without end.
      Column("ends_at", .integer, optional: true),
      Column("product", .text, optional: true),
      Column("original_transaction", .text, optional: true),
      Column("catalogue_version", .text),
      Column("version", .integer),
      // The state as it stands in the topic: JSON.
      Column("document", .bytes),
    ])

  public static let balance = Table(
    "balance", key: [Column("environment", .text), Column("account", .text), Column("unit", .text)],
    columns: [Column("amount", .integer)])

  /// Double entry: each line moves an amount from one side to the other; lines are never changed.
  public static let ledger = Table(
    "ledger",
    key: [
      Column("environment", .text), Column("account", .text), Column("unit", .text),
      // What the line answers to: a transaction and what happened to it, a spend's idempotency key, an order.
      Column("entry", .text),
    ],
    columns: [
      Column("debit", .text), Column("credit", .text), Column("amount", .integer), Column("version", .integer),
      Column("recorded_at", .integer),
    ])

  /// What became of what somebody asked for without a proof: a spend, a claim, an operator's order. One answer for ever.
  public static let answer = Table(
    "answer",
    key: [
      Column("environment", .text), Column("account", .text),
      // `spend:` and the idempotency key, `claim:` and the attempt, `order:` and the order's id; of one about an account
      // that was merged into this one `from:ACCOUNT/` before it.
      Column("request", .text),
    ],
    columns: [
      // spend, claim or an order's action.
      Column("kind", .text),
      // done or refused.
      Column("outcome", .text),
      // A code from a closed list.
      Column("reason", .text),
      // What was asked, in one line: another request under the same name is a conflict. Null where it isn't known.
      Column("asked", .text, optional: true),
      // Of the account's last event after it; null where it isn't known.
      Column("version", .integer, optional: true),
      // Coordinates of the record of `owned` that it was answered by.
      Column("source", .text),
      // Log time.
      Column("recorded_at", .integer),
    ])

  /// Answers to who wants to finish a transaction, by account and proof.
  public static let permit = Table(
    "permit",
    key: [
      Column("environment", .text), Column("account", .text),
      // The proof's SHA-256 in hex, or `attempt:` and the producer's id for a payment that has no proof.
      Column("proof", .text),
    ],
    columns: [
      // finishable, refused or pending.
      Column("status", .text),
      // granted, already-granted or none.
      Column("content", .text),
      // A code from a closed list.
      Column("reason", .text),
      Column("transaction", .text, optional: true),
      Column("product", .text, optional: true),
      Column("event", .text, optional: true),
      Column("decided_at", .integer),
    ])

  /// Every event written about an account: a version can't be used twice.
  public static let change = Table(
    "change", key: [Column("environment", .text), Column("account", .text), Column("version", .integer)],
    columns: [
      Column("event", .text), Column("type", .text), Column("subject", .text), Column("source", .text),
      Column("rule", .text), Column("recorded_at", .integer),
    ])

  /// An audit tree's state: how many leaves, and the roots of its full subtrees.
  public static let auditTree = Table(
    "audit_tree", key: [Column("topic", .text), Column("partition", .integer)],
    columns: [
      Column("size", .integer), Column("frontier", .bytes), Column("root", .text),
      // The largest timestamp among the leaves: the partition's log time.
      Column("latest_at", .integer),
      Column("checkpointed_size", .integer), Column("checkpointed_at", .integer),
      // The newest checkpoint, as the signed note that stands in the topic; null while there is none.
      Column("checkpoint", .text, optional: true),
      // Of the row that sums up all partitions: what it has summed, and its event while that may not be published yet: JSON.
      Column("document", .bytes, optional: true),
    ])

  /// Leaf hashes, 256 to a row, with the broker's offsets beside.
  public static let auditTile = Table(
    "audit_tile", key: [Column("topic", .text), Column("partition", .integer), Column("tile", .integer)],
    columns: [Column("hashes", .bytes), Column("offsets", .bytes)])

  /// What audit watches of each transaction: several partitions write to one row, hence merge.
  public static let auditWatch = Table(
    "audit_watch", key: [Column("environment", .text), Column("subject", .text)],
    columns: [
      // When a client reported it, and when its proof was found to be genuine and when not: log time, the earliest.
      Column("purchased_at", .integer, optional: true), Column("verified_at", .integer, optional: true),
      Column("rejected_at", .integer, optional: true),
      // When a client reported that the payment failed, when finishing was permitted, and when a client said that it had finished.
      Column("failed_at", .integer, optional: true), Column("granted_at", .integer, optional: true),
      Column("finished_at", .integer, optional: true),
      // Bits of what was reported already.
      Column("reported", .integer, optional: true),
      // Log time at which the row must be looked at; null when it is closed.
      Column("look_at", .integer, optional: true),
    ])

  public static let all: [Table] = [
    catalogue, chain, alias, notification, account, entitlement, balance, ledger, answer, permit, change, auditTree,
    auditTile,
    auditWatch,
  ]

  /// Columns that have an index of their own, besides the key.
  public var indexed: [String] {
    switch name {
    case "chain": ["account", "unowned_since"]
    case "account": ["due_at", "catalogue_version"]
    case "permit": ["transaction"]
    case "audit_watch": ["look_at"]
    default: []
    }
  }

  /// Integer columns of which `merge` keeps the smaller value.
  public var keepsLeast: [String] {
    name == "audit_watch"
      ? ["purchased_at", "verified_at", "rejected_at", "failed_at", "granted_at", "finished_at", "look_at"] : []
  }
}
