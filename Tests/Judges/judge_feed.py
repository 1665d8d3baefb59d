"""The change feed, kept by two programs that are not ours, on a real broker whose cleaner really compacts: one folds
`entitlements` from its beginning, the other loads the compacted `entitlement-state` and goes on with what is live. Both come
to the same, wherever the second one begins, and to what `purchases state` says."""

import concurrent.futures
import copy
import json
import os
import pathlib
import subprocess
import tempfile
import time
import uuid
from collections import Counter, namedtuple

from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import (
    AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec, ResourceType
)

from judging import PROGRAM, RUN_SECONDS, Skip, once, purchases

# A broker that says nothing for so long is not there.
BROKER_SECONDS = 30
# The cleaner is asked to look twice a second; on a busy machine it may take a while to come to it.
COMPACTION_SECONDS = 60
# Copies that begin while the day is played, beside one that begins before it and one after.
MIDSTREAM = 4
INACTIVE = {"active": False}

Record = namedtuple("Record", "partition offset type key data")


class Refused(Exception):
    """The feed contradicts itself."""


class Copy:
    """What a service that follows the feed knows: of each entitlement the newest state, and the change that made it."""

    def __init__(self):
        self.states = {}

    def load(self, record):
        """A record of the compacted topic: the newest there is, or an older one that a newer one follows."""
        assert record.key == "/".join(record.data[name] for name in ("environment", "account", "entitlement")), record
        self.states[record.key] = record.data["version"], record.data["after"]

    def follow(self, record):
        """A record of `entitlements`."""
        if not record.type.startswith("entitlement."):
            return
        data = record.data
        key = f"{record.key}/{data['entitlement']}"
        version, state = self.states.get(key, (0, INACTIVE))
        if data["version"] <= version:
            # The copy was loaded after this change.
            return
        if data["before"] != state:
            raise Refused(f"{key}: version {data['version']} changes {data['before']}, and {state} was there")
        self.states[key] = data["version"], data["after"]


class Fold(Copy):
    """From the beginning: sees every version of every account, and its balances."""

    def __init__(self):
        super().__init__()
        self.versions, self.balances = {}, {}

    def follow(self, record):
        data = record.data
        expected = self.versions.get(record.key, 0) + 1
        if data["version"] != expected:
            raise Refused(f"{record.key}: version {data['version']} follows {expected - 1}")
        self.versions[record.key] = expected
        if record.type.startswith("credit."):
            unit = f"{record.key}/{data['unit']}"
            signed = data["amount"] if record.type.startswith("credit.added") else -data["amount"]
            before = self.balances.get(unit, 0)
            if data["balanceBefore"] != before or data["balanceAfter"] != before + signed:
                raise Refused(f"{unit}: {before} and {signed} make {data['balanceAfter']}")
            self.balances[unit] = data["balanceAfter"]
        super().follow(record)


def fold(records):
    folded = Fold()
    for record in records:
        folded.follow(record)
    return folded


class Topics:
    """The two topics of a deployment with a prefix of its own."""

    def __init__(self):
        self.servers = os.environ.get("PURCHASES_TEST_KAFKA")
        if not self.servers:
            raise Skip("PURCHASES_TEST_KAFKA names no broker")
        self.prefix = f"feed-{uuid.uuid4().hex[:8]}."
        self.connection = ["--log", f"kafka://{self.servers}", "--prefix", self.prefix, "--partitions", "2"]
        self.admin = AdminClient({"bootstrap.servers": self.servers})
        self.entitlements, self.state = self.prefix + "entitlements", self.prefix + "entitlement-state"
        purchases("topics", *self.connection)

    def configure(self, resource, settings):
        entries = [
            ConfigEntry(
                name, value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in settings.items()
        ]
        request = ConfigResource(*resource, incremental_configs=entries)
        for outcome in self.admin.incremental_alter_configs([request]).values():
            outcome.result(BROKER_SECONDS)

    def pace_cleaner(self, milliseconds):
        """How often the brokers look for what there is to compact; None: as they were started."""
        for broker in self.admin.list_topics(timeout=BROKER_SECONDS).brokers:
            self.configure((ResourceType.BROKER, str(broker)), {"log.cleaner.backoff.ms": milliseconds})

    def ends(self, topic, isolation):
        """The end of each partition: of what is committed, or of all that lies there."""
        partitions = self.admin.list_topics(topic, timeout=BROKER_SECONDS).topics[topic].partitions
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}
        answers = self.admin.list_offsets(asked, isolation_level=isolation)
        return {partition.partition: answer.result(BROKER_SECONDS).offset for partition, answer in answers.items()}

    def committed(self, topic):
        return self.ends(topic, IsolationLevel.READ_COMMITTED)

    def read(self, topic, starts, ends):
        """The committed records of each partition from one offset up to another; waits for what is still open there."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers, "group.id": self.prefix + "judge", "enable.auto.commit": False,
                "isolation.level": "read_committed", "enable.partition.eof": True,
            }
        )
        records, missing = [], {number for number, end in ends.items() if starts.get(number, 0) < end}
        try:
            consumer.assign([TopicPartition(topic, number, starts.get(number, 0)) for number in missing])
            while missing:
                message = consumer.poll(BROKER_SECONDS)
                assert message is not None, f"{topic}: nothing for {BROKER_SECONDS} s"
                number = message.partition()
                if message.error() is not None:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    if message.offset() >= ends[number]:
                        missing.discard(number)
                    continue
                if message.offset() >= ends[number]:
                    missing.discard(number)
                elif number in missing:
                    head = dict(message.headers())
                    records.append(
                        Record(
                            number, message.offset(), head["ce_type"].decode(), message.key().decode(),
                            json.loads(message.value()),
                        )
                    )
            return sorted(records, key=lambda record: record[:2])
        finally:
            consumer.close()

    def begin(self):
        """A copy as a new service makes it: it remembers how far `entitlements` is committed, and then loads the compacted
        topic to its very end. What was committed before has its state in there by then, and what wasn't is still to come."""
        starts = self.committed(self.entitlements)
        ends = self.ends(self.state, IsolationLevel.READ_UNCOMMITTED)
        loaded = self.read(self.state, {}, ends)
        begun = Copy()
        for record in loaded:
            begun.load(record)
        return begun, starts, len(loaded)


Day = namedtuple("Day", "topics changes copies compacted kept")


@once
def day():
    """A day on the broker; copies that began before, while it was played and after, and went on to its end."""
    topics = Topics()
    folder = tempfile.TemporaryDirectory(prefix="purchases-judges.")
    kept = pathlib.Path(folder.name) / "kept"
    topics.configure(
        (ResourceType.TOPIC, topics.state),
        # A segment that is written no more is compacted: so there is one every few records.
        {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"},
    )
    topics.pace_cleaner("500")
    try:
        begun = [topics.begin()]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PURCHASES_")}
        words = [PROGRAM, "demo", "--accounts", "60", "--seed", "8", *topics.connection, "--keep", kept,
                 "--store", f"sqlite:{kept.parent / 'store.db'}", "--group", topics.prefix + "group"]
        demo = subprocess.Popen(
            [str(word) for word in words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        with concurrent.futures.ThreadPoolExecutor(1) as reader:
            outcome = reader.submit(demo.communicate, timeout=RUN_SECONDS)
            try:
                seen = 0
                while not outcome.done():
                    there = sum(topics.committed(topics.entitlements).values())
                    if there >= seen + 20 and len(begun) <= MIDSTREAM:
                        seen = there
                        begun.append(topics.begin())
                    else:
                        time.sleep(0.05)
                printed, _ = outcome.result()
            finally:
                if demo.poll() is None:
                    demo.kill()
        assert demo.returncode == 0, printed[-3000:].decode(errors="replace")
        ends = topics.committed(topics.entitlements)
        changes = topics.read(topics.entitlements, {}, ends)
        compacted = await_compaction(topics, changes)
    finally:
        topics.pace_cleaner(None)
    begun.append(topics.begin())
    copies = []
    for begun_copy, starts, loaded in begun:
        for record in changes:
            if record.offset >= starts.get(record.partition, 0):
                begun_copy.follow(record)
        copies.append((begun_copy, starts, loaded))
    return Day(topics, changes, copies, compacted, folder)


def await_compaction(topics, changes):
    """What is left in the compacted topic, once the broker has taken something out of every partition of it."""
    told = Counter(record.partition for record in changes if record.type.startswith("entitlement."))
    deadline = time.monotonic() + COMPACTION_SECONDS
    while True:
        left = topics.read(topics.state, {}, topics.ends(topics.state, IsolationLevel.READ_UNCOMMITTED))
        if all(Counter(record.partition for record in left)[number] < count for number, count in told.items()):
            return left
        assert time.monotonic() < deadline, f"the broker has compacted nothing in {COMPACTION_SECONDS} s"
        time.sleep(0.5)


def judge_the_broker_has_compacted():
    changes = [record for record in day().changes if record.type.startswith("entitlement.")]
    assert len(changes) > 100 and len(day().compacted) < len(changes), (len(day().compacted), len(changes))
    newest = {}
    for record in changes:
        newest[f"{record.key}/{record.data['entitlement']}"] = record.data
    left = {}
    for record in day().compacted:
        left[record.key] = record.data
    assert left == newest, "what is left isn't the newest of each"


def judge_every_change_follows_the_one_before():
    folded = fold(day().changes)
    assert folded.states and folded.balances and sum(folded.versions.values()) == len(day().changes)


def judge_copies_from_the_compacted_topic_agree_with_the_fold():
    folded = fold(day().changes).states
    assert len(day().copies) > 2, "no copy began while the day was played"
    for begun, starts, loaded in day().copies:
        different = [key for key in begun.states.keys() | folded if begun.states.get(key) != folded.get(key)]
        assert not different, f"begun at {starts} with {loaded} records: {different[:5]} of {len(different)}"
    assert day().copies[0][2] == 0 and day().copies[-1][2] > 0
    assert any(0 < loaded for _, _, loaded in day().copies[1:-1]), "no copy began in the middle"


def judge_the_feed_is_what_the_store_says():
    folded = fold(day().changes)
    at = max(record.data["asOf"] for record in day().changes)
    accounts = {record.key.split("/")[1] for record in day().changes}
    store = f"sqlite:{pathlib.Path(day().kept.name) / 'store.db'}"

    def ask(account):
        answer = purchases(
            "state", "--account", account, "--at", at, "--json", *day().topics.connection, "--store", store
        )
        return [json.loads(line) for line in answer.splitlines()]

    states, balances, versions = {}, {}, {}
    with concurrent.futures.ThreadPoolExecutor(2) as askers:
        for views in askers.map(ask, sorted(accounts)):
            for view in views:
                holder = f"{view['environment']}/{view['account']}"
                versions[holder] = view["version"]
                for state in view["entitlements"]:
                    name = state.pop("entitlement")
                    states[f"{holder}/{name}"] = state
                for balance in view["balances"]:
                    balances[f"{holder}/{balance['unit']}"] = balance["amount"]
    assert {key: state for key, (_, state) in folded.states.items() if state["active"]} == states
    assert {key: amount for key, amount in folded.balances.items() if amount} == {
        key: amount for key, amount in balances.items() if amount
    }
    assert folded.versions == {key: version for key, version in versions.items() if version}


def judge_the_compacted_topic_tells_nothing_of_credits():
    """As the AsyncAPI document says: who needs balances folds `entitlements`."""
    assert fold(day().changes).balances
    assert all(record.type.startswith("entitlement.") for record in day().compacted)


# A feed with a mistake in it


def doctored(change):
    """The day's changes, those of one account changed: of the one with most changes of one entitlement."""
    counts = Counter(
        (record.key, record.data["entitlement"]) for record in day().changes if record.type.startswith("entitlement.")
    )
    (holder, entitlement), count = max(counts.items(), key=lambda item: (item[1], item[0]))
    assert count >= 3, counts
    records = copy.deepcopy(day().changes)
    places = [
        place for place, record in enumerate(records)
        if record.key == holder and record.data.get("entitlement") == entitlement
    ]
    change(records, places)
    return records


def refused(records):
    try:
        fold(records)
    except Refused:
        return True
    return False


def judge_a_lost_change_is_refused():
    assert refused(doctored(lambda records, places: records.pop(places[1])))


def judge_swapped_changes_are_refused():
    def swap(records, places):
        records[places[0]], records[places[1]] = records[places[1]], records[places[0]]

    assert refused(doctored(swap))


def judge_a_lost_change_under_mended_versions_is_refused():
    def lose(records, places):
        gone = records.pop(places[1])
        for record in records:
            if record.key == gone.key and record.data["version"] > gone.data["version"]:
                record.data["version"] -= 1

    assert refused(doctored(lose))


def judge_an_altered_state_is_refused():
    def alter(records, places):
        records[places[0]].data["after"]["endsAt"] = "2031-01-01T00:00:00.000Z"

    assert refused(doctored(alter))
    assert refused(doctored(lambda records, places: records[places[1]].data.update(before={"active": False, "x": 1})))


def judge_an_altered_balance_is_refused():
    place = next(place for place, record in enumerate(day().changes) if record.type.startswith("credit."))
    for member in ("amount", "balanceBefore", "balanceAfter"):
        records = copy.deepcopy(day().changes)
        records[place].data[member] += 1
        assert refused(records), member


def judge_a_compacted_topic_that_lost_or_kept_the_wrong_one_is_noticed():
    """A copy that was loaded from it says so at the next change, or comes to another state."""
    folded = fold(day().changes).states
    changes = [record for record in day().changes if record.type.startswith("entitlement.")]
    oldest = {}
    for record in changes:
        oldest.setdefault(f"{record.key}/{record.data['entitlement']}", record)
    stale = next(key for key in oldest if folded[key][0] != oldest[key].data["version"])

    def outcome(change):
        loaded = {record.key: record for record in copy.deepcopy(day().compacted)}
        change(loaded)
        begun = Copy()
        for record in loaded.values():
            begun.load(record)
        return begun.states

    assert outcome(lambda loaded: None) == folded
    assert outcome(lambda loaded: loaded.pop(stale)) != folded
    assert outcome(lambda loaded: loaded.update({stale: oldest[stale]._replace(key=stale)})) != folded
    begun = Copy()
    begun.load(oldest[stale]._replace(key=stale))
    later = [record for record in changes if f"{record.key}/{record.data['entitlement']}" == stale][2:]
    if later:
        try:
            begun.follow(later[0])
        except Refused:
            return
        raise AssertionError("a copy that missed a change goes on without a word")
