"""Python's jsonschema over the schemas and the examples."""

import copy
import json

from jsonschema import Draft202012Validator

from contract import DOCUMENTS, FORMATS, event_faults, faults
from judging import SCHEMAS, examples, wire_type

# Lest a format be taken for a comment: these must be checked.
assert {"date-time"} <= set(FORMATS.checkers)


def judge_schemas_are_json_schema_2020_12():
    for name, document in DOCUMENTS.items():
        Draft202012Validator.check_schema(document)
        assert document["$id"].endswith("/" + name), name
        for place, node in nodes(document):
            if isinstance(node, dict) and isinstance(node.get("$ref"), str):
                file, _, pointer = node["$ref"].partition("#")
                target = DOCUMENTS[file or name]
                for step in filter(None, pointer.split("/")):
                    target = target[step]
            # A misspelt keyword would check nothing.
            if isinstance(node, dict) and place[-1:] != ("properties",) and place[-1:] != ("$defs",):
                unknown = set(node) - KEYWORDS if "dependentRequired" not in place else set()
                assert not unknown, f"{name} {'/'.join(map(str, place))}: {unknown}"


KEYWORDS = set(
    "$schema $id $defs $ref title description type required properties additionalProperties enum const pattern format anyOf "
    "minLength maxLength minimum maximum items allOf if then dependentRequired examples answer".split()
)


def nodes(node, place=()):
    yield place, node
    if isinstance(node, dict):
        for key, value in node.items():
            yield from nodes(value, (*place, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from nodes(value, (*place, index))


def judge_every_example_is_valid():
    seen = set()
    for name, data in examples():
        found = event_faults(wire_type(name), json.loads(data))
        assert not found, f"{name}: {found}"
        seen.add(f"{wire_type(name)}.schema.json")
    missing = set(DOCUMENTS) - seen - {"common.schema.json", "headers.schema.json"}
    assert not missing, f"no example of {missing}"


def judge_the_example_headers_are_valid():
    record = json.loads((SCHEMAS / "examples/headers.json").read_text())
    headers = {header["name"]: header["value"] for header in record["headers"]}
    assert not faults("headers.schema.json", headers)
    for name in ("ce_specversion", "ce_id", "ce_source", "ce_type", "ce_originoffset"):
        assert faults("headers.schema.json", {k: v for k, v in headers.items() if k != name}), name
    for name, value in {"ce_specversion": "0.3", "ce_type": "payment.purchased", "ce_time": "noon"}.items():
        assert faults("headers.schema.json", {**headers, name: value}), name


def judge_examples_without_a_required_member_are_not():
    tried = 0
    for name, data in examples():
        value = json.loads(data)
        for member in DOCUMENTS[f"{wire_type(name)}.schema.json"]["required"]:
            doctored = {key: inner for key, inner in value.items() if key != member}
            assert event_faults(wire_type(name), doctored), f"{name} without {member}"
            tried += 1
    assert tried > 150, tried


def judge_ids_written_as_numbers_are_not():
    tried = 0
    for name, data in examples():
        value = json.loads(data)
        for member in ("transactionId", "originalTransactionId"):
            if member in value:
                assert event_faults(wire_type(name), {**value, member: int(value[member])}), f"{name} {member}"
                tried += 1
    assert tried > 10, tried


def judge_every_member_is_held_to_its_schema():
    """Each top-level member of each example, replaced by a value of another kind, is noticed."""
    for name, data in examples():
        value = json.loads(data)
        for member, inner in value.items():
            wrong = [1] if not isinstance(inner, list) else "text"
            found = event_faults(wire_type(name), {**copy.deepcopy(value), member: wrong})
            assert found, f"{name}: {member} may be anything"


def judge_doctored_values_are_not_valid():
    cases = [
        ("payment.added.v1", {"environment": "production"}),
        ("payment.added.v1", {"account": "a/b"}),
        ("payment.added.v1", {"account": "x" * 129}),
        ("payment.added.v1", {"quantity": 0}),
        ("payment.added.v1", {"quantity": 1.5}),
        ("payment.added.v1", {"occurredAt": "2025-02-30T00:00:00Z"}),
        ("payment.added.v1", {"signedTransaction": "a.b.c"}),
        ("payment.purchased.v1", {"transactionId": "0x12"}),
        ("payment.purchased.v1", {"signedTransaction": ""}),
        ("payment.failed.v1", {"failure": {"domain": "SKErrorDomain"}}),
        ("credit.spend.requested.v1", {"amount": 0}),
        ("access.ordered.v1", {"action": "gift"}),
        ("access.ordered.v1", {"action": "transfer"}),
        ("access.ordered.v1", {"action": "merge"}),
        ("access.ordered.v1", {"action": "reverse"}),
        ("access.ordered.v1", {"action": "adjust", "unit": "coins"}),
        ("access.ordered.v1.adjust", {"amount": 0}),
        ("access.ordered.v1.adjust", {"amount": 10**12 + 1}),
        ("access.ordered.v1.adjust", {"amount": 0.5}),
        ("fact.noted.v1.owned.handed-on", {"via": ["a/b"]}),
        ("purchase.verified.v1", {"kind": "receipt"}),
        ("purchase.verified.v1", {"proof": "AB" * 32}),
        ("purchase.verified.v1", {"parts": [{}]}),
        ("purchase.verified.v1", {"report": {"type": "purchase.verified"}}),
        ("purchase.owned.v1", {"basis": "none"}),
        ("consent.rescinded.v1", {"appTransactionId": ""}),
        ("consent.rescinded.v1", {"notification": {"notificationType": "RESCIND_CONSENT"}}),
        ("fact.noted.v1", {"outcome": "passed"}),
        ("entitlement.granted.v1", {"version": 0}),
        ("entitlement.granted.v1", {"after": {"active": False}}),
        ("entitlement.expired.v1", {"after": {"active": True}}),
        ("credit.removed.v1", {"amount": -80}),
        ("credit.removed.v1", {"balanceAfter": "240"}),
        ("payment.finishable.v1", {"content": "some"}),
        ("audit.checkpointed.v1", {"scope": "summary"}),
        ("audit.anomaly.found.v1", {"ageMilliseconds": -1}),
        ("catalogue.published.v1", {"from": "tomorrow"}),
        ("catalogue.published.v1", {"catalogue": {"version": "2", "products": [{"id": "a", "type": "gift"}]}}),
    ]
    valid = dict(examples())
    for name, change in cases:
        assert event_faults(wire_type(name), {**json.loads(valid[name]), **change}), f"{name} with {change}"


def judge_unknown_members_are_valid():
    for name, data in examples():
        value = {**json.loads(data), "x-new": {"of": ["a", "later", "version"]}}
        assert not event_faults(wire_type(name), value), name
