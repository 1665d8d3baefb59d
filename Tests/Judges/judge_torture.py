"""The checker of the torture (`Tests/Torture`), judged itself: what a demo leaves holds, and every doctored copy of it is
refused, whatever topic the change is in."""

import collections
import copy
import dataclasses
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

from judging import PROGRAM, ROOT, Skip, once, purchases

sys.path.insert(0, str(ROOT / "Tests/Torture"))
import checker  # noqa: E402
import evidence  # noqa: E402

# Beside the minutes of the torture: to play the day, to start brokers, to come to rest and to judge, on a busy machine.
TORTURE_SECONDS = 700
TOPICS = ["received", "verified", "owned", "entitlements"]


@once
def genuine():
    with tempfile.TemporaryDirectory(prefix="purchases-judges.") as folder:
        log, store = (f"sqlite:{pathlib.Path(folder) / name}" for name in ("log.db", "store.db"))
        kept = pathlib.Path(folder) / "kept"
        purchases("demo", "--accounts", 60, "--seed", 11, "--log", log, "--store", store, "--keep", kept)
        found = evidence.read(log, store)
    found.accepted = {record.id for record in found.topics["received"] if record.type != "operator.acted.v1"}
    return found


def kinds(found):
    return set(checker.check(found).kinds)


def doctored(topic, change):
    """A copy in which the records of one partition are changed; its trees and its offsets are as they were."""
    found = copy.copy(genuine())
    records = found.topics[topic]
    partition = max({record.partition for record in records}, key=[record.partition for record in records].count)
    inside = [record for record in records if record.partition == partition]
    if change is lost:
        # One that something came of: of one that led to nothing, only the tree knows. Which lies in the middle is chance.
        inside = lost(inside, {checker.source(record) for records in found.topics.values() for record in records})
    else:
        inside = change(inside)
    others = [record for record in records if record.partition != partition]
    found.topics = {**found.topics, topic: sorted(others + inside, key=lambda record: (record.partition, record.offset))}
    return found


def lost(records, sources):
    """Without the middle one of those that others name as their source; of all, where nobody does."""
    named = [place for place, record in enumerate(records) if record.place in sources] or list(range(len(records)))
    place = named[len(named) // 2]
    return records[:place] + records[place + 1 :]


def doubled(records):
    return records + [dataclasses.replace(records[len(records) // 2], offset=records[-1].offset + 1)]


def reordered(records):
    """Two of one key, whose order is promised."""
    for place, first in enumerate(records):
        for other, second in enumerate(records[place + 1 :], place + 1):
            if first.key == second.key and first.value != second.value:
                swapped = list(records)
                swapped[place] = dataclasses.replace(second, offset=first.offset)
                swapped[other] = dataclasses.replace(first, offset=second.offset)
                return swapped
    raise AssertionError("no key stands twice")


def invented(records):
    last = records[-1]
    headers = tuple((name, b"0" * 64 if name == "ce_id" else value) for name, value in last.headers)
    return records + [dataclasses.replace(last, headers=headers, offset=last.offset + 1)]


def judge_a_genuine_log_holds():
    faults = checker.check(genuine())
    assert not faults.kinds, list(faults.lines())
    assert sum(len(records) for records in genuine().topics.values()) > 500


def judge_doctored_logs_are_refused():
    for topic in TOPICS:
        for change in (lost, doubled, reordered, invented):
            found = kinds(doctored(topic, change))
            assert "audit" in found, f"{change.__name__} in {topic}: the tree does not show it: {found}"
            # The feed and the books are judged without the audit log, too.
            if topic == "entitlements" or change is lost or (change, topic) == (doubled, "verified"):
                assert found - {"audit"}, f"{change.__name__} in {topic}: only the tree shows it"


def judge_a_broken_chain_of_changes_is_refused():
    """Of a change that a newer one follows only what stands before and after tells: the store and the state topic know the
    newest alone. The type, the version and the id stay as they were."""
    records = genuine().topics["entitlements"]
    chains = collections.defaultdict(list)
    for place, record in enumerate(records):
        if record.type.startswith("entitlement."):
            chains[record.key, record.data["entitlement"]].append(place)
    first, second = next(places[:2] for places in chains.values() if len(places) > 2)

    def altered(place, member, state):
        data = {**records[place].data, member: state}
        return dataclasses.replace(records[place], value=json.dumps(data).encode())

    later = {**records[first].data["after"], "endsAt": "2099-01-01T00:00:00.000Z"}
    for what, place, member, state in (
        ("a beginning from something", first, "before", later),
        ("an altered state after", first, "after", later),
        ("an altered state before", second, "before", {"active": False, "endsAt": "2099-01-01T00:00:00.000Z"}),
        ("a change that passes over the one before it", second, "before", records[first].data["before"]),
    ):
        assert records[place].data[member] != state, what
        found = copy.copy(genuine())
        doctored_records = [*records[:place], altered(place, member, state), *records[place + 1 :]]
        found.topics = {**found.topics, "entitlements": doctored_records}
        assert kinds(found) == {"audit", "contradicted"}, f"{what}: {kinds(found)}"


def judge_doctored_books_are_refused():
    for table, column, value in [
        ("balance", "amount", "1"), ("entitlement", "active", "2"), ("permit", "content", "none"), ("account", "version", "1"),
        ("change", "event", "0"), ("audit_tree", "root", "0"),
    ]:
        found = copy.copy(genuine())
        rows = found.tables[table]
        place = next(place for place, row in enumerate(rows) if row[column] != value and row.get("status") != "refused")
        changed = [*rows[:place], {**rows[place], column: value}, *rows[place + 1 :]]
        found.tables = {**found.tables, table: changed}
        assert kinds(found), f"another {column} in {table} goes unseen"
        if table != "audit_tree":
            found.tables[table] = rows[:place] + rows[place + 1 :]
            assert kinds(found), f"a row too few in {table} goes unseen"


def judge_what_the_log_lacks_is_told():
    found = copy.copy(genuine())
    found.accepted = {*found.accepted, "never-received"}
    assert kinds(found) == {"lost"}
    found = copy.copy(genuine())
    found.poison = {(0, 0)}
    assert kinds(found) == {"lost"}
    found = copy.copy(genuine())
    found.forged = {row["proof"] for row in found.tables["permit"] if row["status"] == "finishable"}
    assert kinds(found) == {"forged"}, "a grant on a forged proof goes unseen"
    found.forged = {"0" * 64}
    assert kinds(found) == {"forged"}, "a forged proof without a verdict goes unseen"
    found = copy.copy(genuine())
    (place, offset), *_ = found.offsets.items()
    found.offsets = {**found.offsets, place: offset - 1}
    assert kinds(found) == {"lag"}
    short = copy.copy(genuine())
    short.topics = {**short.topics, "entitlements": [r for r in short.topics["entitlements"] if r.type != "credit.added.v1"]}
    assert checker.differences(genuine(), short), "missing credits are no difference"
    assert not checker.differences(genuine(), genuine())


def torture(log, store, minutes, accounts):
    """The torture itself, on a debug build, with a new seed each time."""
    seed = random.randrange(1 << 32)
    words = ["--program", PROGRAM, "--debug-program", PROGRAM, "--log", log, "--store", store]
    words += ["--minutes", minutes, "--accounts", accounts, "--seed", seed]
    words = [sys.executable, "-B", str(ROOT / "Tests/Torture/torture.py"), *map(str, words)]
    run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = run.communicate(timeout=minutes * 60 + TORTURE_SECONDS)
    except subprocess.TimeoutExpired:
        # It ends its brokers and processes itself.
        run.terminate()
        output, _ = run.communicate()
    said = output.decode(errors="replace")
    assert run.returncode == 0, f"seed {seed}\n{said[-8000:]}"
    print("\n".join(line for line in said.splitlines() if "events:" in line or "faults:" in line or "seed" in line), file=sys.stderr)


def judge_two_minutes_of_torture_on_two_files():
    torture("sqlite", "sqlite", minutes=2, accounts=300)


def judge_four_minutes_of_torture_on_kafka_and_postgresql():
    if not os.environ.get("PURCHASES_TEST_KAFKA"):
        raise Skip("Apache Kafka could not be fetched")
    torture("kafka", "postgres", minutes=4, accounts=600)
