"""The CloudEvents SDK and confluent-kafka: they read our records, and we read theirs."""

import json
import os
import pathlib
import re
import tempfile
import uuid
from datetime import datetime, timezone

from cloudevents.core.bindings import kafka
from cloudevents.core.v1.event import CloudEvent
from confluent_kafka import Consumer, Producer, TopicPartition

from contract import event_faults, faults
from judging import ROOT, Skip, examples, line, once, purchases, wire_type

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
# A broker that says nothing for so long is not there.
BROKER_SECONDS = 30


class Deployment:
    """A prefix of its own on the broker, and a store in a folder of its own."""

    def __init__(self):
        self.servers = os.environ.get("PURCHASES_TEST_KAFKA")
        if not self.servers:
            raise Skip("PURCHASES_TEST_KAFKA names no broker")
        self.prefix = f"judge-{uuid.uuid4().hex[:8]}."
        self.folder = tempfile.TemporaryDirectory(prefix="purchases-judges.")
        self.connection = ["--log", f"kafka://{self.servers}", "--prefix", self.prefix, "--partitions", 2]
        purchases("topics", *self.connection)

    def publish(self, lines):
        answer = purchases("publish", "--file", "-", "--json", *self.connection, input=b"\n".join(lines))
        return json.loads(answer)

    def run(self):
        store = pathlib.Path(self.folder.name) / "store.db"
        purchases(
            "run", "--until-idle", *self.connection, "--group", self.prefix + "group", "--store", f"sqlite:{store}",
            "--bundle-id", "com.example.app", "--app-apple-id", 1234567890,
            "--catalogue", ROOT / "Deploy/catalogue.json",
        )

    def write(self, topic, messages):
        producer = Producer({"bootstrap.servers": self.servers, "acks": "all"})
        faults = []
        for message in messages:
            producer.produce(
                self.prefix + topic, key=message.key, value=message.value, headers=list(message.headers.items()),
                on_delivery=lambda error, _: error and faults.append(error),
            )
        assert producer.flush(BROKER_SECONDS) == 0 and not faults, faults

    def read(self, topic):
        """Every committed record of a topic."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers, "group.id": self.prefix + "judge", "enable.auto.commit": False,
                "isolation.level": "read_committed", "enable.partition.eof": True,
            }
        )
        name = self.prefix + topic
        try:
            partitions = consumer.list_topics(name, timeout=BROKER_SECONDS).topics[name].partitions
            consumer.assign([TopicPartition(name, number, 0) for number in partitions])
            open_ends, records = set(partitions), []
            while open_ends:
                message = consumer.poll(BROKER_SECONDS)
                assert message is not None, f"{name}: nothing for {BROKER_SECONDS} s"
                if message.error() is None:
                    records.append(message)
                else:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    open_ends.discard(message.partition())
            return records
        finally:
            consumer.close()


def headers(message):
    names = [name for name, _ in message.headers() or []]
    assert len(names) == len(set(names)), f"a header twice: {names}"
    return dict(message.headers() or [])


def event(message):
    """A record read by the SDK, whatever its content mode; ours must be binary."""
    head = headers(message)
    assert "ce_type" in head and head["content-type"] == b"application/json"
    return kafka.from_kafka_event(kafka.KafkaMessage(headers=head, key=message.key(), value=message.value()))


@once
def published():
    deployment = Deployment()
    lines = {}
    for name, data in examples():
        if wire_type(name) in RECEIVED:
            lines[name] = line(name, data)
    outcome = deployment.publish(list(lines.values()))
    assert outcome["refused"] == [] and "failure" not in outcome, outcome
    return deployment, lines, outcome


RECEIVED = {
    f"{name}.v1"
    for name in (
        "payment.added payment.deferred payment.purchased payment.failed payment.restored payment.finished "
        "restore.started restore.completed restore.failed purchase.claimed credit.spend.requested"
    ).split()
}


def judge_the_sdk_reads_what_we_publish():
    deployment, lines, outcome = published()
    assert outcome["accepted"] == len(lines), outcome
    records = deployment.read("received")
    assert len(records) == len(lines)
    assert {message.value() for message in records} == set(lines.values())
    for message in records:
        read = event(message)
        assert read.get_specversion() == "1.0"
        assert read.get_type() in RECEIVED and read.get_data()["type"] == read.get_type()
        assert re.fullmatch("[0-9a-f]{64}", read.get_id())
        assert read.get_source().startswith("/")
        assert read.get_datacontenttype() == "application/json"
        assert abs((datetime.now(timezone.utc) - read.get_time()).total_seconds()) < 3600
        assert read.get_data() == json.loads(message.value())
        assert read.get_extension("partitionkey") == message.key().decode()
        text = {name: value.decode() for name, value in headers(message).items()}
        assert not faults("headers.schema.json", text), text
        assert not event_faults(read.get_type(), read.get_data())


def judge_a_second_publication_has_the_same_ids():
    deployment, lines, _ = published()
    before = sorted(headers(message)["ce_id"] for message in deployment.read("received"))
    deployment.publish(list(lines.values()))
    after = sorted(headers(message)["ce_id"] for message in deployment.read("received"))
    assert set(before) == set(after) and len(after) == 2 * len(before)


def foreign(type, data, **attributes):
    """An event of another producer's making: its own id and source, compact or not, binary mode."""
    return kafka.to_binary_event(
        CloudEvent(
            {
                "type": type, "source": "https://shop.example/queue", "id": str(uuid.uuid4()), "specversion": "1.0",
                "datacontenttype": "application/json", "time": datetime.now(timezone.utc), **attributes,
            },
            data,
        )
    )


FAILED = {
    "environment": "Production", "account": "judge-1", "attemptId": "attempt-1", "productId": "com.example.coins.100",
    "failure": {"domain": "SKErrorDomain", "code": 2, "userCancelled": True}, "x-ours": {"kept": [1, 2.50]},
}


@once
def foreign_run():
    """One good event, sent twice; one that names no account; and much that is no event of ours."""
    deployment = Deployment()
    good = foreign("payment.failed.v1", FAILED, partitionkey="Production/judge-1", traceparent=TRACE)
    no_account = {name: value for name, value in FAILED.items() if name != "account"}
    bad = {
        "value": kafka.KafkaMessage(headers=good.headers, key="k", value=b"\xff\xfenot json"),
        "unfinished": kafka.KafkaMessage(headers=good.headers, key="k", value=b"{"),
        "absent value": kafka.KafkaMessage(headers=good.headers, key="k", value=None),
        "no account": foreign("payment.failed.v1", no_account, partitionkey="k"),
        "unknown type": foreign("com.example.ordered", {"a": 1}, partitionkey="k"),
        "no headers": kafka.KafkaMessage(headers={}, key="k", value=good.value),
        "no id": kafka.KafkaMessage(
            headers={name: value for name, value in good.headers.items() if name != "ce_id"}, key=None, value=good.value
        ),
        "structured mode": kafka.to_structured_event(
            CloudEvent({"type": "payment.failed.v1", "source": "/s", "id": "1", "specversion": "1.0"}, FAILED)
        ),
        "our own topic's type": foreign("purchase.verified.v1", {}, partitionkey="k"),
    }
    deployment.write("received", [good, *bad.values(), good])
    deployment.run()
    return deployment, good, bad


def permits(deployment):
    records = [message for message in deployment.read("entitlements")]
    return [(message, event(message)) for message in records if headers(message)["ce_type"] == b"payment.finishable.v1"]


def judge_we_take_what_the_sdk_writes():
    deployment, good, _ = foreign_run()
    found = permits(deployment)
    assert len(found) == 1, f"{len(found)} permits for one failed payment, sent twice"
    message, read = found[0]
    data = read.get_data()
    assert not event_faults(read.get_type(), data), data
    assert data["proof"] == "attempt:attempt-1" and data["content"] == "none" and data["reason"] == "payment-failed"
    assert data["account"] == "judge-1" and data["version"] == 1
    assert message.key() == b"Production/judge-1"
    assert read.get_extension("traceparent") == TRACE
    assert read.get_extension("origintopic") == deployment.prefix + "owned"


def judge_unknown_members_and_the_trace_survive_the_way():
    deployment, good, _ = foreign_run()
    for topic in ("verified", "owned"):
        found = [event(message) for message in deployment.read(topic) if headers(message)["ce_type"] == b"fact.noted.v1"]
        assert found, topic
        for read in found:
            assert read.get_data()["data"] == FAILED
            assert read.get_extension("traceparent") == TRACE
            assert not event_faults("fact.noted.v1", read.get_data())


def judge_what_is_no_event_is_quarantined_once_byte_for_byte():
    deployment, _, bad = foreign_run()
    found = deployment.read("quarantine")
    expected = sorted((message.value or b"") for message in bad.values())
    assert sorted((message.value() or b"") for message in found) == expected
    for message in found:
        text = {name: (value or b"").decode() for name, value in headers(message).items()}
        assert not faults("headers.schema.json#/$defs/quarantined", text), text
        assert text["purchases-quarantine-topic"] == deployment.prefix + "received"
        assert text["purchases-quarantine-stage"] == "verification" and text["purchases-quarantine-alarm"] == "none"
        assert "not json" not in text["purchases-quarantine-reason"]
    reasons = " | ".join(sorted(text_of(message, "purchases-quarantine-reason") for message in found))
    for named in ("account", "ce_id", "com.example.ordered", "value"):
        assert named in reasons, reasons


def text_of(message, name):
    return headers(message)[name].decode()


def judge_a_second_run_changes_nothing():
    deployment, _, bad = foreign_run()
    before = {topic: len(deployment.read(topic)) for topic in ("verified", "owned", "entitlements", "quarantine")}
    deployment.run()
    after = {topic: len(deployment.read(topic)) for topic in before}
    assert before == after
