"""What the judges share: where things are, and how the program under judgement is called. Standard library only."""

import functools
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "Schemas"
PROGRAM = pathlib.Path(os.environ.get("PURCHASES_TEST_PROGRAM", ROOT / ".build/debug/purchases"))

# A run of the program that takes longer than this hangs: the demo of sixty accounts takes seconds.
RUN_SECONDS = 300


class Skip(Exception):
    """This judge can't be asked here; the text says why."""


def once(body):
    """What several judges look at is made once; where that fails, it fails for each of them without another try."""

    @functools.cache
    def outcome():
        try:
            return body(), None
        except Exception as error:
            return None, error

    @functools.wraps(body)
    def ask():
        value, error = outcome()
        if error is not None:
            raise error
        return value

    return ask


def purchases(*arguments, input=None, status=0):
    """Runs the program, with no setting from the environment, and answers what it printed."""
    if not PROGRAM.exists():
        raise AssertionError(f"{PROGRAM} is not built")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PURCHASES_")}
    words = [str(word) for word in arguments]
    run = subprocess.run(
        [str(PROGRAM), *words], input=input, capture_output=True, env=environment, timeout=RUN_SECONDS
    )
    assert run.returncode == status, (
        f"purchases {' '.join(words)}: exit {run.returncode}, not {status}\n"
        f"{run.stdout[-2000:].decode(errors='replace')}\n{run.stderr[-4000:].decode(errors='replace')}"
    )
    return run.stdout


def examples():
    """Name without `.json` and bytes of every example of an event's data."""
    for path in sorted((SCHEMAS / "examples").glob("*.json")):
        if path.name != "headers.json":
            yield path.stem, path.read_bytes()


def wire_type(example):
    """`payment.finishable.v1` of the example `payment.finishable.v1.failed`."""
    return re.match(r".+?\.v[0-9]+(?=\.|$)", example)[0]


def line(example, data):
    """An example of received data as a line for `purchases publish`."""
    return json.dumps({"type": wire_type(example), **json.loads(data)}, separators=(",", ":")).encode()
