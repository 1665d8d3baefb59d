extension Migration {
  /// Answers to requests, catalogues with the instant from which they hold, and a ledger that refuses half a line.
  static let second = Migration(
    version: 2, name: "answers", sql: answers + "\n" + given + "\n" + catalogue + "\n" + ledger)

  /// Made once in a request's life, and kept in the order in which they are made.
  private static let answers = """
    CREATE TABLE answer (
      environment TEXT NOT NULL,
      account TEXT NOT NULL,
      request TEXT NOT NULL,
      kind TEXT NOT NULL,
      outcome TEXT NOT NULL,
      reason TEXT NOT NULL,
      asked TEXT,
      version INTEGER,
      source TEXT NOT NULL,
      recorded_at INTEGER NOT NULL,
      PRIMARY KEY (environment, account, request)
    ) STRICT;
    """

  /// What the first version answered to spends. It kept a key once for each unit: of two spends under one key the earlier
  /// is the answer from now on. Of a refused one it kept the unit only.
  private static let given = """
    INSERT OR IGNORE INTO answer
    SELECT environment, account, entry, 'spend', 'done', 'spent', unit || ' ' || amount, version, 'before version 2',
      recorded_at
    FROM ledger WHERE entry >= 'spend:' AND entry < 'spend;' ORDER BY version;
    INSERT OR IGNORE INTO answer
    SELECT environment, account, 'spend:' || substr(proof, 7 + instr(substr(proof, 7), ':')), 'spend', 'refused', reason,
      NULL, NULL, 'before version 2', decided_at
    FROM permit WHERE proof >= 'spend:' AND proof < 'spend;' ORDER BY decided_at;
    DELETE FROM permit WHERE proof >= 'spend:' AND proof < 'spend;';
    CREATE TRIGGER answer_is_fixed BEFORE UPDATE ON answer
    BEGIN SELECT RAISE(ABORT, 'answer: what was answered is never changed'); END;
    CREATE TRIGGER answer_is_kept BEFORE DELETE ON answer
    BEGIN SELECT RAISE(ABORT, 'answer: what was answered is never removed'); END;
    """

  private static let catalogue = """
    ALTER TABLE catalogue ADD COLUMN valid_from INTEGER;
    DROP INDEX account_waiting;
    CREATE INDEX account_outdated ON account (catalogue_version, "partition", environment, account);
    """

  /// Of each line one side is the account's and the other somebody else's.
  private static let ledger = """
    CREATE TRIGGER ledger_line_has_two_sides BEFORE INSERT ON ledger
    WHEN NEW.amount <= 0 OR (NEW.debit = 'account') = (NEW.credit = 'account')
    BEGIN SELECT RAISE(ABORT, 'ledger: a line moves an amount above 0 between the account and another side'); END;
    """
}
