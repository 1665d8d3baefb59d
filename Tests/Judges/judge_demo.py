"""Python's jsonschema and the CloudEvents SDK over every record that a demo leaves in the topics."""

import json
import pathlib
import tempfile
from collections import Counter, defaultdict

from cloudevents.core.bindings import kafka

from contract import channel_types, event_faults, faults
from judging import once, purchases

TOPICS = ["received", "verified", "owned", "entitlements", "entitlement-state", "parked", "quarantine", "audit"]


@once
def demo():
    """Every record of every topic, as `purchases tail` prints them, by topic."""
    with tempfile.TemporaryDirectory(prefix="purchases-judges.") as folder:
        log = f"sqlite:{pathlib.Path(folder) / 'log.db'}"
        store = f"sqlite:{pathlib.Path(folder) / 'store.db'}"
        purchases(
            "demo", "--accounts", 60, "--seed", 5, "--log", log, "--store", store, "--keep", pathlib.Path(folder) / "kept"
        )
        return {
            topic: [json.loads(text) for text in purchases("tail", topic, "--log", log).splitlines()] for topic in TOPICS
        }


def headers(record):
    return {header["name"]: header["value"] for header in record["headers"] if "value" in header}


def place(record):
    return f"{record['topic']}/{record['partition']}/{record['offset']}"


def judge_the_demo_says_something():
    counts = {topic: len(records) for topic, records in demo().items()}
    for topic in ("received", "verified", "owned", "entitlements", "entitlement-state", "audit"):
        assert counts[topic] > 20, counts
    types = Counter(headers(record)["ce_type"] for records in demo().values() for record in records)
    assert len(types) >= 20, types


def judge_every_record_is_valid():
    allowed = channel_types()
    for topic, records in demo().items():
        for record in records:
            head = headers(record)
            if topic == "quarantine":
                found = faults("headers.schema.json#/$defs/quarantined", head)
            else:
                part = "#/$defs/parked" if topic == "parked" else ""
                found = faults("headers.schema.json" + part, head) + event_faults(head["ce_type"], record["value"])
                if head["ce_type"] not in allowed[topic]:
                    found.append(f"{head['ce_type']} is no message of {topic}")
            assert not found, f"{place(record)} {head.get('ce_type')}: {found}\n{json.dumps(record)[:4000]}"


def judge_every_record_is_a_cloudevent():
    for topic, records in demo().items():
        if topic == "quarantine":
            continue
        for record in records:
            head = {name: value.encode() for name, value in headers(record).items() if name.startswith("ce_")}
            message = kafka.KafkaMessage(
                headers={**head, "content-type": b"application/json"},
                key=record["key"],
                value=json.dumps(record["value"]).encode(),
            )
            event = kafka.from_binary_event(message)
            assert event.get_data() == record["value"], place(record)
            assert event.get_time().tzinfo is not None, place(record)


def judge_every_output_names_its_source_and_none_is_missing():
    stored = {place(record) for records in demo().values() for record in records}
    outputs = defaultdict(set)
    for topic, records in demo().items():
        for record in records:
            head = headers(record)
            if topic == "quarantine":
                names = "purchases-quarantine-", ("topic", "partition", "offset"), ("index", "count")
                stage = head["purchases-quarantine-stage"]
            elif "ce_origintopic" in head:
                names = "ce_", ("origintopic", "originpartition", "originoffset"), ("outputindex", "outputcount")
                stage = "verification" if topic == "parked" else head["ce_source"].rsplit("/", 1)[1]
            else:
                assert topic in ("received", "owned", "audit"), f"{place(record)} names no source"
                continue
            prefix, coordinates, counts = names
            origin = "/".join(head[prefix + name] for name in coordinates)
            assert origin in stored, f"{place(record)} comes from {origin}, which is not there"
            index, count = (int(head[prefix + name]) for name in counts)
            assert (index, count) not in outputs[origin, stage, count], f"{place(record)} is there twice"
            outputs[origin, stage, count].add((index, count))
    for (origin, stage, count), found in outputs.items():
        assert len(found) == count, f"{stage} says that {origin} has {count} outputs; found {sorted(found)}"
    sources = {origin for origin, _, _ in outputs}
    for record in demo()["received"]:
        assert place(record) in sources, f"{place(record)} has no output"


def judge_versions_count_up_by_one_per_account():
    versions = defaultdict(list)
    for record in demo()["entitlements"]:
        assert record["key"] == f"{record['value']['environment']}/{record['value']['account']}"
        versions[record["key"]].append(record["value"]["version"])
    for account, found in versions.items():
        assert found == list(range(1, len(found) + 1)), f"{account}: {found}"


def judge_an_id_stands_twice_only_for_what_was_received_twice():
    ids = {place(record): headers(record).get("ce_id") for records in demo().values() for record in records}
    for topic in ("verified", "owned", "entitlements"):
        origins = defaultdict(list)
        for record in demo()[topic]:
            head = headers(record)
            if "ce_origintopic" in head:
                origin = "/".join(head["ce_origin" + name] for name in ("topic", "partition", "offset"))
                origins[head["ce_id"]].append(origin)
        for name, found in origins.items():
            # Two outputs of one record never share an id; outputs of two do where those two are one event.
            assert len(set(found)) == len(found), f"{topic}: {name} twice from one record"
            assert len({ids[origin] for origin in found}) == 1, f"{topic}: {name} comes from different events"
            assert topic != "entitlements" or len(found) == 1, f"{name} took effect twice"
