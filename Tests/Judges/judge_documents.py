"""OpenAPI's and AsyncAPI's own checkers over our documents."""

import json
import os
import pathlib

import yaml
from jsonschema import Draft7Validator
from openapi_spec_validator import validate

from contract import DOCUMENTS, asyncapi
from judging import SCHEMAS, Skip


def judge_openapi():
    document = yaml.safe_load((SCHEMAS / "openapi.yaml").read_text())
    assert document["openapi"].startswith("3.1")
    validate(document)


def judge_asyncapi_by_its_official_schema():
    path = os.environ.get("PURCHASES_JUDGES_ASYNCAPI")
    if not path:
        raise Skip("npm is not here, and the official JSON Schema of AsyncAPI comes as an npm package")
    official = Draft7Validator(json.loads(pathlib.Path(path).read_text()))
    document = asyncapi()
    found = [f"{error.json_path}: {error.message[:300]}" for error in official.iter_errors(document)]
    assert not found, found
    # And it is a check: a document that is wrong is found.
    document["channels"]["received"]["adress"] = "purchases.received"
    assert list(official.iter_errors(document))


def references(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def judge_references_of_the_asyncapi_document():
    document = asyncapi()
    assert document["asyncapi"] == "3.0.0"
    used = set()
    for reference in references(document):
        file, _, pointer = reference.partition("#")
        target = document
        if file:
            used.add(pathlib.PurePosixPath(file).name)
            target = json.loads((SCHEMAS / file).read_text())
        for step in filter(None, pointer.split("/")):
            assert step in target, f"{reference} leads nowhere"
            target = target[step]
    missing = set(DOCUMENTS) - used - {"common.schema.json"}
    assert not missing, f"no message has the schemas {missing}"
    messages = {f"#/components/messages/{name}" for name in document["components"]["messages"]}
    assert not messages - set(references(document["channels"])), "a message that no topic holds"
    sent = {operation["channel"]["$ref"] for operation in document["operations"].values()}
    assert sent == {f"#/channels/{name}" for name in document["channels"]}, "a topic without an operation"
