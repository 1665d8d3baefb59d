extension Migration {
  /// Answers to requests, catalogues with the instant from which they hold, and a ledger that refuses half a line.
  static let second = Migration(
    version: 2, name: "answers", sql: answers + "\n" + given + "\n" + catalogue + "\n" + ledger)

  private static let answers = """
    CREATE TABLE answer (
      environment text COLLATE "C" NOT NULL,
      account text COLLATE "C" NOT NULL,
      request text COLLATE "C" NOT NULL,
      kind text COLLATE "C" NOT NULL,
      outcome text COLLATE "C" NOT NULL,
      reason text COLLATE "C" NOT NULL,
      asked text COLLATE "C",
      version bigint,
      source text COLLATE "C" NOT NULL,
      recorded_at bigint NOT NULL,
      PRIMARY KEY (environment, account, request)
    );
    """

  /// What the first version answered to spends. It kept a key once for each unit: of two spends under one key the earlier
  /// is the answer from now on. Of a refused one it kept the unit only.
  private static let given = """
    INSERT INTO answer
    SELECT environment, account, entry, 'spend', 'done', 'spent', unit || ' ' || amount, version, 'before version 2',
      recorded_at
    FROM ledger WHERE entry >= 'spend:' AND entry < 'spend;' ORDER BY version
    ON CONFLICT DO NOTHING;
    INSERT INTO answer
    SELECT environment, account, 'spend:' || substr(proof, 7 + strpos(substr(proof, 7), ':')), 'spend', 'refused', reason,
      NULL, NULL, 'before version 2', decided_at
    FROM permit WHERE proof >= 'spend:' AND proof < 'spend;' ORDER BY decided_at
    ON CONFLICT DO NOTHING;
    DELETE FROM permit WHERE proof >= 'spend:' AND proof < 'spend;';
    CREATE TRIGGER answer_is_fixed BEFORE UPDATE ON answer FOR EACH ROW
    EXECUTE FUNCTION purchases_refuse('what was answered is never changed');
    CREATE TRIGGER answer_is_kept BEFORE DELETE ON answer FOR EACH ROW
    EXECUTE FUNCTION purchases_refuse('what was answered is never removed');
    CREATE TRIGGER answer_is_not_truncated BEFORE TRUNCATE ON answer
    EXECUTE FUNCTION purchases_refuse('what was answered is never removed');
    """

  private static let catalogue = """
    ALTER TABLE catalogue ADD COLUMN valid_from bigint;
    DROP INDEX account_waiting;
    CREATE INDEX account_outdated ON account (catalogue_version, "partition", environment, account);
    """

  /// Of each line one side is the account's and the other somebody else's. Lines that are there already are not looked at.
  private static let ledger = """
    ALTER TABLE ledger ADD CONSTRAINT ledger_line_has_two_sides
    CHECK (amount > 0 AND (debit = 'account') <> (credit = 'account')) NOT VALID;
    """
}
