extension Migration {
  /// Names of the constraints by which the books refuse a writer.
  static let fences: Set<String> = [
    "stage_batch_fence", "stage_position_epoch_rises", "stage_position_only_forward", "stage_position_is_kept",
  ]

  /// All tables. Text is compared by bytes (COLLATE "C"), as SQLite does, whatever the database's own order is.
  static let first = Migration(
    version: 1, name: "first",
    sql: refusal + "\n" + books + "\n" + ownership + "\n" + entitlements + "\n" + auditing + "\n" + readable)

  /// What every trigger calls that only says no: the refusal carries the trigger's name as a constraint's.
  private static let refusal = """
    CREATE FUNCTION purchases_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = TG_ARGV[0], CONSTRAINT = TG_NAME,
        TABLE = TG_TABLE_NAME;
    END $$;
    """

  /// Positions, epochs and outgoing records.
  ///
  /// A batch enters the books by its row in `stage_batch`: the trigger lets it in only if it names the epoch and the
  /// position that are in `stage_position`, and moves the position itself. So no writer, ours or a person's, can move a
  /// position back or write under an old epoch without first removing a trigger.
  private static let books = """
    CREATE TABLE stage (
      name text COLLATE "C" PRIMARY KEY,
      consumer_group text COLLATE "C" NOT NULL
    );
    CREATE TRIGGER stage_group_is_fixed BEFORE UPDATE ON stage FOR EACH ROW
    WHEN (NEW.consumer_group <> OLD.consumer_group OR NEW.name <> OLD.name)
    EXECUTE FUNCTION purchases_refuse('a store belongs to one consumer group');

    CREATE TABLE stage_position (
      stage text COLLATE "C" NOT NULL REFERENCES stage (name),
      topic text COLLATE "C" NOT NULL,
      "partition" bigint NOT NULL CONSTRAINT stage_position_partition CHECK ("partition" >= 0),
      epoch bigint NOT NULL CONSTRAINT stage_position_epoch CHECK (epoch >= 1),
      next bigint CONSTRAINT stage_position_next CHECK (next >= 0),
      PRIMARY KEY (stage, topic, "partition")
    ) WITH (fillfactor = 50);
    CREATE TRIGGER stage_position_epoch_rises BEFORE UPDATE ON stage_position FOR EACH ROW
    WHEN (NEW.epoch < OLD.epoch) EXECUTE FUNCTION purchases_refuse('an epoch only rises');
    CREATE TRIGGER stage_position_only_forward BEFORE UPDATE ON stage_position FOR EACH ROW
    WHEN (OLD.next IS NOT NULL AND (NEW.next IS NULL OR NEW.next < OLD.next))
    EXECUTE FUNCTION purchases_refuse('a position only moves forward');
    CREATE TRIGGER stage_position_is_kept BEFORE DELETE ON stage_position FOR EACH ROW
    EXECUTE FUNCTION purchases_refuse('a position is never removed');
    CREATE TRIGGER stage_position_is_not_truncated BEFORE TRUNCATE ON stage_position
    EXECUTE FUNCTION purchases_refuse('a position is never removed');

    CREATE TABLE stage_batch (
      stage text COLLATE "C" NOT NULL,
      topic text COLLATE "C" NOT NULL,
      "partition" bigint NOT NULL,
      next bigint NOT NULL,
      epoch bigint NOT NULL,
      from_position bigint,
      record_count bigint NOT NULL,
      PRIMARY KEY (stage, topic, "partition", next),
      CONSTRAINT stage_batch_forward CHECK (next >= 0 AND (from_position IS NULL OR next > from_position))
    );
    CREATE FUNCTION purchases_enter_batch() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
      UPDATE stage_position SET next = NEW.next
      WHERE stage = NEW.stage AND topic = NEW.topic AND "partition" = NEW."partition" AND epoch = NEW.epoch
        AND next IS NOT DISTINCT FROM NEW.from_position;
      IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'check_violation', MESSAGE = 'another epoch or position is in the books',
          CONSTRAINT = 'stage_batch_fence', TABLE = TG_TABLE_NAME;
      END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER stage_batch_enters BEFORE INSERT ON stage_batch FOR EACH ROW
    EXECUTE FUNCTION purchases_enter_batch();
    CREATE TRIGGER stage_batch_is_fixed BEFORE UPDATE ON stage_batch FOR EACH ROW
    EXECUTE FUNCTION purchases_refuse('a batch is never changed');

    -- Outgoing records of a batch, many to a row, until they are published: short-lived, so not worth compressing.
    CREATE TABLE stage_outbox (
      stage text COLLATE "C" NOT NULL,
      topic text COLLATE "C" NOT NULL,
      "partition" bigint NOT NULL,
      next bigint NOT NULL,
      part bigint NOT NULL,
      records bytea NOT NULL,
      PRIMARY KEY (stage, topic, "partition", next, part),
      FOREIGN KEY (stage, topic, "partition", next) REFERENCES stage_batch ON DELETE CASCADE
    );
    ALTER TABLE stage_outbox ALTER records SET STORAGE EXTERNAL;
    """

  private static let ownership = """
    CREATE TABLE chain (
      environment text COLLATE "C" NOT NULL,
      original_transaction text COLLATE "C" NOT NULL,
      account text COLLATE "C",
      basis text COLLATE "C" NOT NULL,
      unowned_since bigint,
      document bytea NOT NULL,
      PRIMARY KEY (environment, original_transaction)
    );
    CREATE INDEX chain_account ON chain (account, environment, original_transaction) WHERE account IS NOT NULL;
    CREATE INDEX chain_unowned_since ON chain (unowned_since, environment, original_transaction)
    WHERE unowned_since IS NOT NULL;

    CREATE TABLE catalogue (
      version text COLLATE "C" NOT NULL PRIMARY KEY,
      kept_at bigint NOT NULL,
      document bytea NOT NULL
    );

    CREATE TABLE alias (
      environment text COLLATE "C" NOT NULL,
      account text COLLATE "C" NOT NULL,
      into_account text COLLATE "C" NOT NULL,
      PRIMARY KEY (environment, account)
    );

    CREATE TABLE notification (
      environment text COLLATE "C" NOT NULL,
      uuid text COLLATE "C" NOT NULL,
      digest text COLLATE "C" NOT NULL,
      topic_offset text COLLATE "C" NOT NULL,
      PRIMARY KEY (environment, uuid)
    );
    """

  private static let entitlements = """
    CREATE TABLE account (
      environment text COLLATE "C" NOT NULL,
      account text COLLATE "C" NOT NULL,
      "partition" bigint NOT NULL,
      version bigint NOT NULL CONSTRAINT account_version CHECK (version >= 0),
      due_at bigint,
      waiting bigint NOT NULL CONSTRAINT account_waiting CHECK (waiting IN (0, 1)),
      catalogue_version text COLLATE "C" NOT NULL,
      document bytea NOT NULL,
      PRIMARY KEY (environment, account)
    );
    CREATE INDEX account_due_at ON account (due_at, environment, account, "partition") WHERE due_at IS NOT NULL;
    CREATE INDEX account_waiting ON account ("partition", environment, account, catalogue_version) WHERE waiting = 1;
    CREATE TRIGGER account_version_only_rises BEFORE UPDATE ON account FOR EACH ROW
    WHEN (NEW.version < OLD.version) EXECUTE FUNCTION purchases_refuse('a version only rises');

    CREATE TABLE entitlement (
      environment text COLLATE "C" NOT NULL,
      account text COLLATE "C" NOT NULL,
      entitlement text COLLATE "C" NOT NULL,
      active bigint NOT NULL CONSTRAINT entitlement_active CHECK (active IN (0, 1)),
      ends_at bigint,
      product text COLLATE "C",
      original_transaction text COLLATE "C",
      catalogue_version text COLLATE "C" NOT NULL,
      version bigint NOT NULL,
      document bytea NOT NULL,
      PRIMARY KEY (environment, account, entitlement)
    );

    CREATE TABLE balance (
      environment text COLLATE "C" NOT NULL,
      account text COLLATE "C" NOT NULL,
      unit text COLLATE "C" NOT NULL,
      amount bigint NOT NULL,
      PRIMARY KEY (environment, account, unit)
    );

    CREATE TABLE ledger (
      environment text COLLATE "C" NOT NULL,
      account text COLLATE "C" NOT NULL,
      unit text COLLATE "C" NOT NULL,
      entry text COLLATE "C" NOT NULL,
      debit text COLLATE "C" NOT NULL,
      credit text COLLATE "C" NOT NULL,
      amount bigint NOT NULL,
      version bigint NOT NULL,
      recorded_at bigint NOT NULL,
      PRIMARY KEY (environment, account, unit, entry)
    );
    CREATE TRIGGER ledger_line_is_fixed BEFORE UPDATE ON ledger FOR EACH ROW
    EXECUTE FUNCTION purchases_refuse('a line is never changed');
    CREATE TRIGGER ledger_line_is_kept BEFORE DELETE ON ledger FOR EACH ROW
    EXECUTE FUNCTION purchases_refuse('a line is never removed');
    CREATE TRIGGER ledger_is_not_truncated BEFORE TRUNCATE ON ledger
    EXECUTE FUNCTION purchases_refuse('a line is never removed');

    CREATE TABLE permit (
      environment text COLLATE "C" NOT NULL,
      account text COLLATE "C" NOT NULL,
      proof text COLLATE "C" NOT NULL,
      status text COLLATE "C" NOT NULL,
      content text COLLATE "C" NOT NULL,
      reason text COLLATE "C" NOT NULL,
      "transaction" text COLLATE "C",
      product text COLLATE "C",
      event text COLLATE "C",
      decided_at bigint NOT NULL,
      PRIMARY KEY (environment, account, proof)
    );
    CREATE INDEX permit_transaction ON permit ("transaction", environment, account, proof)
    WHERE "transaction" IS NOT NULL;

    CREATE TABLE change (
      environment text COLLATE "C" NOT NULL,
      account text COLLATE "C" NOT NULL,
      version bigint NOT NULL CONSTRAINT change_version CHECK (version >= 1),
      event text COLLATE "C" NOT NULL,
      type text COLLATE "C" NOT NULL,
      subject text COLLATE "C" NOT NULL,
      source text COLLATE "C" NOT NULL,
      rule text COLLATE "C" NOT NULL,
      recorded_at bigint NOT NULL,
      PRIMARY KEY (environment, account, version)
    );
    CREATE TRIGGER change_is_fixed BEFORE UPDATE ON change FOR EACH ROW
    EXECUTE FUNCTION purchases_refuse('what was written is never changed');
    CREATE TRIGGER change_is_kept BEFORE DELETE ON change FOR EACH ROW
    EXECUTE FUNCTION purchases_refuse('what was written is never removed');
    CREATE TRIGGER change_is_not_truncated BEFORE TRUNCATE ON change
    EXECUTE FUNCTION purchases_refuse('what was written is never removed');
    """

  private static let auditing = """
    CREATE TABLE audit_tree (
      topic text COLLATE "C" NOT NULL,
      "partition" bigint NOT NULL,
      size bigint NOT NULL CONSTRAINT audit_tree_size CHECK (size >= 0),
      frontier bytea NOT NULL,
      root text COLLATE "C" NOT NULL,
      latest_at bigint NOT NULL,
      checkpointed_size bigint NOT NULL,
      checkpointed_at bigint NOT NULL,
      checkpoint text COLLATE "C",
      document bytea,
      PRIMARY KEY (topic, "partition")
    );
    CREATE TRIGGER audit_tree_only_grows BEFORE UPDATE ON audit_tree FOR EACH ROW
    WHEN (NEW.size < OLD.size OR NEW.checkpointed_size < OLD.checkpointed_size)
    EXECUTE FUNCTION purchases_refuse('a tree only grows');

    CREATE TABLE audit_tile (
      topic text COLLATE "C" NOT NULL,
      "partition" bigint NOT NULL,
      tile bigint NOT NULL CONSTRAINT audit_tile_tile CHECK (tile >= 0),
      hashes bytea NOT NULL,
      offsets bytea NOT NULL,
      PRIMARY KEY (topic, "partition", tile)
    );

    CREATE TABLE audit_watch (
      environment text COLLATE "C" NOT NULL,
      subject text COLLATE "C" NOT NULL,
      purchased_at bigint,
      verified_at bigint,
      rejected_at bigint,
      failed_at bigint,
      granted_at bigint,
      finished_at bigint,
      reported bigint,
      look_at bigint,
      PRIMARY KEY (environment, subject)
    );
    CREATE INDEX audit_watch_look_at ON audit_watch (look_at, environment, subject) WHERE look_at IS NOT NULL;
    """

  /// For people with `psql`: documents as text and instants as times.
  private static let readable = """
    CREATE VIEW readable_chain AS
    SELECT environment, original_transaction, account, basis, to_timestamp(unowned_since / 1000.0) AS unowned_since,
      convert_from(document, 'UTF8') AS document
    FROM chain;
    CREATE VIEW readable_account AS
    SELECT environment, account, version, to_timestamp(due_at / 1000.0) AS due_at, waiting = 1 AS waiting,
      catalogue_version, convert_from(document, 'UTF8') AS document
    FROM account;
    CREATE VIEW readable_entitlement AS
    SELECT environment, account, entitlement, active = 1 AS active, to_timestamp(ends_at / 1000.0) AS ends_at, product,
      original_transaction, catalogue_version, version, convert_from(document, 'UTF8') AS document
    FROM entitlement;
    """
}
