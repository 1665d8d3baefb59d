"""The contract as people outside read it: the schemas through `jsonschema`, the topics through the AsyncAPI document."""

import json

import yaml
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from judging import SCHEMAS

DOCUMENTS = {path.name: json.loads(path.read_text()) for path in sorted((SCHEMAS / "events").glob("*.json"))}
REGISTRY = Registry().with_resources(
    [(document["$id"], Resource.from_contents(document)) for document in DOCUMENTS.values()]
)
FORMATS = FormatChecker()


def validator(reference):
    """A validator for a file in `Schemas/events`, or for a part of one behind `#`."""
    name, _, part = reference.partition("#")
    schema = {"$ref": DOCUMENTS[name]["$id"] + ("#" + part if part else "")}
    return Draft202012Validator(schema, registry=REGISTRY, format_checker=FORMATS)


_VALIDATORS = {}


def faults(reference, value):
    """What is wrong with a value, each fault with its place; nothing for a valid one."""
    if reference not in _VALIDATORS:
        _VALIDATORS[reference] = validator(reference)
    return [f"{error.json_path}: {error.message}" for error in _VALIDATORS[reference].iter_errors(value)]


def event_faults(wire_type, value):
    name = f"{wire_type}.schema.json"
    return faults(name, value) if name in DOCUMENTS else [f"{wire_type} has no schema"]


def asyncapi():
    return yaml.safe_load((SCHEMAS / "asyncapi.yaml").read_text())


def channel_types():
    """The event types that each topic may hold, by the last part of the topic's name."""
    document = asyncapi()
    types = {}
    for channel in document["channels"].values():
        topic = channel["address"].removeprefix("purchases.")
        types[topic] = set()
        for message in channel["messages"].values():
            name = document["components"]["messages"][message["$ref"].rsplit("/", 1)[1]]["name"]
            types[topic].add(name)
    # A state is the newest change of an entitlement, under another key.
    types["entitlement-state"] = {name for name in types["entitlements"] if name.startswith("entitlement.")}
    types["parked"] = types["received"]
    return types
