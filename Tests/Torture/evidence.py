"""What a run of the pipeline leaves behind, read without any of the pipeline's own code: the topics as a reader of
committed records sees them, the groups' offsets, and the tables of the store."""

import csv
import io
import json
import sqlite3
import struct
import subprocess
from dataclasses import dataclass, field

TOPICS = ["received", "verified", "owned", "entitlements", "entitlement-state", "parked", "quarantine", "audit", "catalogue"]
STAGES = {
    "verification": ["received", "parked"],
    "ownership": ["verified"],
    "entitlements": ["owned"],
    "auditing": ["received", "verified", "owned", "entitlements", "parked", "quarantine", "catalogue"],
}
TABLES = {
    "entitlement": ["environment", "account", "entitlement", "active", "version"],
    "balance": ["environment", "account", "unit", "amount"],
    "account": ["environment", "account", "version"],
    "change": ["environment", "account", "version", "event", "type"],
    "permit": ["environment", "account", "proof", "status", "content", "reason"],
    "audit_tree": ["topic", "partition", "size", "root"],
}
# A broker that says nothing for so long is not there.
BROKER_SECONDS = 30


@dataclass(frozen=True)
class Record:
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    headers: tuple
    value: bytes | None

    @property
    def place(self):
        return f"{self.topic}/{self.partition}/{self.offset}"

    def header(self, name):
        """The last of its name: what is put beside a record's own headers comes after them."""
        for key, value in reversed(self.headers):
            if key == name:
                return None if value is None else value.decode(errors="replace")
        return None

    @property
    def id(self):
        return self.header("ce_id")

    @property
    def type(self):
        return self.header("ce_type")

    @property
    def data(self):
        return json.loads(self.value)


@dataclass
class Evidence:
    topics: dict = field(default_factory=dict)
    """Short topic name to its committed records, by partition and offset."""
    offsets: dict = field(default_factory=dict)
    """(stage, topic, partition) to the group's committed offset."""
    tables: dict = field(default_factory=dict)
    accepted: set = field(default_factory=set)
    """Ids that the gateway has answered 2xx for."""
    poison: set = field(default_factory=set)
    """(partition, offset) of what was put into `received` to be quarantined."""
    forged: set = field(default_factory=set)
    """Digests of proofs that nobody has signed as they are."""


def read(log, store, prefix="purchases.", group="purchases"):
    """Everything there is, of a log and a store named by the URLs that the program takes."""
    evidence = Evidence()
    (_kafka if log.startswith("kafka://") else _embedded)(evidence, log, prefix, group)
    for table, columns in TABLES.items():
        rows = (_postgres if store.startswith("postgres") else _sqlite)(store, table, columns)
        evidence.tables[table] = [dict(zip(columns, row)) for row in rows]
    return evidence


def _embedded(evidence, url, prefix, group):
    connection = sqlite3.connect(f"file:{url.removeprefix('sqlite:')}?mode=ro", uri=True)
    partitions = {}
    query = "SELECT p.id, t.name, p.number FROM partition p JOIN topic t ON t.id = p.topic_id ORDER BY t.name, p.number"
    for identity, name, number in connection.execute(query):
        topic = name.removeprefix(prefix)
        partitions[identity] = (topic, number)
        records = evidence.topics.setdefault(topic, [])
        rows = connection.execute(
            f'SELECT "offset", timestamp, key, headers, value FROM record_{identity} ORDER BY "offset"'
        )
        for offset, timestamp, key, headers, value in rows:
            records.append(Record(topic, number, offset, timestamp, key, _headers(headers), value))
    query = "SELECT g.name, o.partition_id, o.next FROM committed_offset o JOIN consumer_group g ON g.id = o.group_id"
    for name, identity, following in connection.execute(query):
        stage = name.removeprefix(group + ".")
        if stage in STAGES:
            evidence.offsets[(stage, *partitions[identity])] = following
    connection.close()


def _headers(blob):
    """For each header, the length and the bytes of its name and of its value; length -1: no value."""
    headers, place = [], 0

    def text():
        nonlocal place
        (length,) = struct.unpack_from(">i", blob, place)
        place += 4
        if length < 0:
            return None
        place += length
        return blob[place - length : place]

    while place < len(blob):
        name = text().decode()
        headers.append((name, text()))
    return tuple(headers)


def _kafka(evidence, url, prefix, group):
    from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import AdminClient

    servers = url.removeprefix("kafka://")
    consumer = Consumer(
        {
            "bootstrap.servers": servers, "group.id": "torture-checker", "enable.auto.commit": False,
            "isolation.level": "read_committed", "enable.partition.eof": True, "fetch.message.max.bytes": 16 << 20,
        }
    )
    try:
        known = consumer.list_topics(timeout=BROKER_SECONDS).topics
        for topic in TOPICS:
            name = prefix + topic
            if name not in known:
                continue
            partitions = sorted(known[name].partitions)
            consumer.assign([TopicPartition(name, number, 0) for number in partitions])
            open_ends, records = set(partitions), []
            while open_ends:
                message = consumer.poll(BROKER_SECONDS)
                if message is None:
                    raise RuntimeError(f"{name}: nothing for {BROKER_SECONDS} s")
                if message.error() is not None:
                    if message.error().name() != "_PARTITION_EOF":
                        raise RuntimeError(f"{name}: {message.error()}")
                    open_ends.discard(message.partition())
                    continue
                records.append(
                    Record(
                        topic, message.partition(), message.offset(), message.timestamp()[1], message.key(),
                        tuple(message.headers() or ()), message.value(),
                    )
                )
            evidence.topics[topic] = sorted(records, key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()
    admin = AdminClient({"bootstrap.servers": servers})
    for stage in STAGES:
        request = [ConsumerGroupTopicPartitions(f"{group}.{stage}")]
        for answer in admin.list_consumer_group_offsets(request).values():
            for found in answer.result(BROKER_SECONDS).topic_partitions:
                if found.offset >= 0:
                    evidence.offsets[stage, found.topic.removeprefix(prefix), found.partition] = found.offset


def _sqlite(url, table, columns):
    connection = sqlite3.connect(f"file:{url.removeprefix('sqlite:')}?mode=ro", uri=True)
    try:
        names = ", ".join(f'"{column}"' for column in columns)
        return [tuple(str(cell) for cell in row) for row in connection.execute(f"SELECT {names} FROM {table}")]
    finally:
        connection.close()


def _postgres(url, table, columns):
    names = ", ".join(f'"{column}"' for column in columns)
    run = subprocess.run(
        ["psql", "-X", "-q", "-d", url, "-c", f"COPY (SELECT {names} FROM {table}) TO STDOUT WITH CSV"],
        capture_output=True, check=True, timeout=600,
    )
    rows = csv.reader(io.StringIO(run.stdout.decode()))
    return [tuple(row) for row in rows]
