extension Migration {
  /// How every refusal by the fence's triggers begins.
  static let fence = "fenced:"

  /// All tables. Text is compared by bytes (SQLite's BINARY), as PostgreSQL's "C" does. Tables that only grow are kept in
  /// the order in which rows come, which fill one page after the other; in the order of their keys every row would dirty
  /// a page of its own, and a batch writes each of them to the disk.
  static let first = Migration(
    version: 1, name: "first",
    sql: books + "\n" + ownership + "\n" + entitlements + "\n" + auditing + "\n" + readable)

  /// Positions, epochs and outgoing records.
  ///
  /// A batch enters the books by its row in `stage_batch`: the trigger lets it in only if it names the epoch and the
  /// position that are in `stage_position`, and moves the position itself. So no writer, ours or a person's, can move a
  /// position back or write under an old epoch without first removing a trigger.
  private static let books = """
    CREATE TABLE stage (
      name TEXT NOT NULL PRIMARY KEY,
      consumer_group TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER stage_group_is_fixed BEFORE UPDATE ON stage
    WHEN NEW.consumer_group <> OLD.consumer_group OR NEW.name <> OLD.name
    BEGIN SELECT RAISE(ABORT, 'stage: a store belongs to one consumer group'); END;

    CREATE TABLE stage_position (
      stage TEXT NOT NULL REFERENCES stage (name),
      topic TEXT NOT NULL,
      "partition" INTEGER NOT NULL CONSTRAINT stage_position_partition CHECK ("partition" >= 0),
      epoch INTEGER NOT NULL CONSTRAINT stage_position_epoch CHECK (epoch >= 1),
      next INTEGER CONSTRAINT stage_position_next CHECK (next >= 0),
      PRIMARY KEY (stage, topic, "partition")
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER stage_position_epoch_rises BEFORE UPDATE ON stage_position WHEN NEW.epoch < OLD.epoch
    BEGIN SELECT RAISE(ABORT, 'fenced: an epoch only rises'); END;
    CREATE TRIGGER stage_position_only_forward BEFORE UPDATE ON stage_position
    WHEN OLD.next IS NOT NULL AND (NEW.next IS NULL OR NEW.next < OLD.next)
    BEGIN SELECT RAISE(ABORT, 'fenced: a position only moves forward'); END;
    CREATE TRIGGER stage_position_is_kept BEFORE DELETE ON stage_position
    BEGIN SELECT RAISE(ABORT, 'fenced: a position is never removed'); END;
    -- INSERT OR REPLACE removes a row without asking the trigger above.
    CREATE TRIGGER stage_position_is_not_replaced BEFORE INSERT ON stage_position
    WHEN EXISTS (
      SELECT 1 FROM stage_position AS p
      WHERE p.stage = NEW.stage AND p.topic = NEW.topic AND p."partition" = NEW."partition")
    BEGIN SELECT RAISE(ABORT, 'fenced: a position is never replaced'); END;

    CREATE TABLE stage_batch (
      stage TEXT NOT NULL,
      topic TEXT NOT NULL,
      "partition" INTEGER NOT NULL,
      next INTEGER NOT NULL,
      epoch INTEGER NOT NULL,
      from_position INTEGER,
      record_count INTEGER NOT NULL,
      PRIMARY KEY (stage, topic, "partition", next),
      CONSTRAINT stage_batch_forward CHECK (next >= 0 AND (from_position IS NULL OR next > from_position))
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER stage_batch_epoch BEFORE INSERT ON stage_batch
    WHEN NOT EXISTS (
      SELECT 1 FROM stage_position AS p
      WHERE p.stage = NEW.stage AND p.topic = NEW.topic AND p."partition" = NEW."partition" AND p.epoch = NEW.epoch)
    BEGIN SELECT RAISE(ABORT, 'fenced: another epoch is in the books'); END;
    CREATE TRIGGER stage_batch_position BEFORE INSERT ON stage_batch
    WHEN NOT EXISTS (
      SELECT 1 FROM stage_position AS p
      WHERE p.stage = NEW.stage AND p.topic = NEW.topic AND p."partition" = NEW."partition"
        AND p.next IS NEW.from_position)
    BEGIN SELECT RAISE(ABORT, 'fenced: another position is in the books'); END;
    CREATE TRIGGER stage_batch_moves AFTER INSERT ON stage_batch
    BEGIN
      UPDATE stage_position SET next = NEW.next
      WHERE stage = NEW.stage AND topic = NEW.topic AND "partition" = NEW."partition";
    END;
    CREATE TRIGGER stage_batch_is_fixed BEFORE UPDATE ON stage_batch
    BEGIN SELECT RAISE(ABORT, 'fenced: a batch is never changed'); END;

    -- Outgoing records of a batch, many to a row, until they are published.
    CREATE TABLE stage_outbox (
      stage TEXT NOT NULL,
      topic TEXT NOT NULL,
      "partition" INTEGER NOT NULL,
      next INTEGER NOT NULL,
      part INTEGER NOT NULL,
      records BLOB NOT NULL,
      PRIMARY KEY (stage, topic, "partition", next, part),
      FOREIGN KEY (stage, topic, "partition", next) REFERENCES stage_batch ON DELETE CASCADE
    ) STRICT;
    """

  private static let ownership = """
    CREATE TABLE chain (
      environment TEXT NOT NULL,
      original_transaction TEXT NOT NULL,
      account TEXT,
      basis TEXT NOT NULL,
      unowned_since INTEGER,
      document BLOB NOT NULL,
      PRIMARY KEY (environment, original_transaction)
    ) STRICT;
    CREATE INDEX chain_account ON chain (account, environment, original_transaction) WHERE account IS NOT NULL;
    CREATE INDEX chain_unowned_since ON chain (unowned_since, environment, original_transaction)
    WHERE unowned_since IS NOT NULL;

    CREATE TABLE catalogue (
      version TEXT NOT NULL PRIMARY KEY,
      kept_at INTEGER NOT NULL,
      document BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE alias (
      environment TEXT NOT NULL,
      account TEXT NOT NULL,
      into_account TEXT NOT NULL,
      PRIMARY KEY (environment, account)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE notification (
      environment TEXT NOT NULL,
      uuid TEXT NOT NULL,
      digest TEXT NOT NULL,
      topic_offset TEXT NOT NULL,
      PRIMARY KEY (environment, uuid)
    ) STRICT, WITHOUT ROWID;
    """

  private static let entitlements = """
    CREATE TABLE account (
      environment TEXT NOT NULL,
      account TEXT NOT NULL,
      "partition" INTEGER NOT NULL,
      version INTEGER NOT NULL CONSTRAINT account_version CHECK (version >= 0),
      due_at INTEGER,
      waiting INTEGER NOT NULL CONSTRAINT account_waiting CHECK (waiting IN (0, 1)),
      catalogue_version TEXT NOT NULL,
      document BLOB NOT NULL,
      PRIMARY KEY (environment, account)
    ) STRICT;
    CREATE INDEX account_due_at ON account (due_at, environment, account, "partition") WHERE due_at IS NOT NULL;
    CREATE INDEX account_waiting ON account ("partition", environment, account, catalogue_version) WHERE waiting = 1;
    CREATE TRIGGER account_version_only_rises BEFORE UPDATE ON account WHEN NEW.version < OLD.version
    BEGIN SELECT RAISE(ABORT, 'account: a version only rises'); END;

    CREATE TABLE entitlement (
      environment TEXT NOT NULL,
      account TEXT NOT NULL,
      entitlement TEXT NOT NULL,
      active INTEGER NOT NULL CONSTRAINT entitlement_active CHECK (active IN (0, 1)),
      ends_at INTEGER,
      product TEXT,
      original_transaction TEXT,
      catalogue_version TEXT NOT NULL,
      version INTEGER NOT NULL,
      document BLOB NOT NULL,
      PRIMARY KEY (environment, account, entitlement)
    ) STRICT;

    CREATE TABLE balance (
      environment TEXT NOT NULL,
      account TEXT NOT NULL,
      unit TEXT NOT NULL,
      amount INTEGER NOT NULL,
      PRIMARY KEY (environment, account, unit)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE ledger (
      environment TEXT NOT NULL,
      account TEXT NOT NULL,
      unit TEXT NOT NULL,
      entry TEXT NOT NULL,
      debit TEXT NOT NULL,
      credit TEXT NOT NULL,
      amount INTEGER NOT NULL,
      version INTEGER NOT NULL,
      recorded_at INTEGER NOT NULL,
      PRIMARY KEY (environment, account, unit, entry)
    ) STRICT;
    CREATE TRIGGER ledger_line_is_fixed BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'ledger: a line is never changed'); END;
    CREATE TRIGGER ledger_line_is_kept BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'ledger: a line is never removed'); END;

    CREATE TABLE permit (
      environment TEXT NOT NULL,
      account TEXT NOT NULL,
      proof TEXT NOT NULL,
      status TEXT NOT NULL,
      content TEXT NOT NULL,
      reason TEXT NOT NULL,
      "transaction" TEXT,
      product TEXT,
      event TEXT,
      decided_at INTEGER NOT NULL,
      PRIMARY KEY (environment, account, proof)
    ) STRICT;
    CREATE INDEX permit_transaction ON permit ("transaction")
    WHERE "transaction" IS NOT NULL;

    CREATE TABLE change (
      environment TEXT NOT NULL,
      account TEXT NOT NULL,
      version INTEGER NOT NULL CONSTRAINT change_version CHECK (version >= 1),
      event TEXT NOT NULL,
      type TEXT NOT NULL,
      subject TEXT NOT NULL,
      source TEXT NOT NULL,
      rule TEXT NOT NULL,
      recorded_at INTEGER NOT NULL,
      PRIMARY KEY (environment, account, version)
    ) STRICT;
    CREATE TRIGGER change_is_fixed BEFORE UPDATE ON change
    BEGIN SELECT RAISE(ABORT, 'change: what was written is never changed'); END;
    CREATE TRIGGER change_is_kept BEFORE DELETE ON change
    BEGIN SELECT RAISE(ABORT, 'change: what was written is never removed'); END;
    """

  private static let auditing = """
    CREATE TABLE audit_tree (
      topic TEXT NOT NULL,
      "partition" INTEGER NOT NULL,
      size INTEGER NOT NULL CONSTRAINT audit_tree_size CHECK (size >= 0),
      frontier BLOB NOT NULL,
      root TEXT NOT NULL,
      latest_at INTEGER NOT NULL,
      checkpointed_size INTEGER NOT NULL,
      checkpointed_at INTEGER NOT NULL,
      checkpoint TEXT,
      document BLOB,
      PRIMARY KEY (topic, "partition")
    ) STRICT;
    CREATE TRIGGER audit_tree_only_grows BEFORE UPDATE ON audit_tree
    WHEN NEW.size < OLD.size OR NEW.checkpointed_size < OLD.checkpointed_size
    BEGIN SELECT RAISE(ABORT, 'audit_tree: a tree only grows'); END;

    CREATE TABLE audit_tile (
      topic TEXT NOT NULL,
      "partition" INTEGER NOT NULL,
      tile INTEGER NOT NULL CONSTRAINT audit_tile_tile CHECK (tile >= 0),
      hashes BLOB NOT NULL,
      offsets BLOB NOT NULL,
      PRIMARY KEY (topic, "partition", tile)
    ) STRICT;

    CREATE TABLE audit_watch (
      environment TEXT NOT NULL,
      subject TEXT NOT NULL,
      purchased_at INTEGER,
      verified_at INTEGER,
      rejected_at INTEGER,
      failed_at INTEGER,
      granted_at INTEGER,
      finished_at INTEGER,
      reported INTEGER,
      look_at INTEGER,
      PRIMARY KEY (environment, subject)
    ) STRICT;
    CREATE INDEX audit_watch_look_at ON audit_watch (look_at, environment, subject) WHERE look_at IS NOT NULL;
    """

  /// For people with `sqlite3`: documents as text and instants as times.
  private static let readable = """
    CREATE VIEW readable_chain AS
    SELECT environment, original_transaction, account, basis, datetime(unowned_since / 1000, 'unixepoch') AS unowned_since,
      CAST(document AS TEXT) AS document
    FROM chain;
    CREATE VIEW readable_account AS
    SELECT environment, account, version, datetime(due_at / 1000, 'unixepoch') AS due_at, waiting, catalogue_version,
      CAST(document AS TEXT) AS document
    FROM account;
    CREATE VIEW readable_entitlement AS
    SELECT environment, account, entitlement, active, datetime(ends_at / 1000, 'unixepoch') AS ends_at, product,
      original_transaction, catalogue_version, version, CAST(document AS TEXT) AS document
    FROM entitlement;
    """
}
