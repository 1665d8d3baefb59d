"""Apple's own libraries, from PyPI and npm, over thousands of tokens with one thing wrong, beside `purchases verify`.

Each difference must be a row of docs/differential.md, and with the seed that stands here each row must be a difference.
"""

import collections
import dataclasses
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import mutations
from judging import ROOT, Skip, once, purchases

SEED = 20261130
PAGE = ROOT / "docs/differential.md"
FIXTURES = ROOT / "Tests/VerificationTests/Fixtures"
MODULES = ROOT / ".cache/judges/node/node_modules"
# After the date of all tokens but those from the future.
NOW = "2026-01-01T00:00:00Z"
# Thousands of tokens take seconds.
LIMIT_SECONDS = 300


class Judged:
    """All tokens with what each verifier says of them."""

    def __init__(self, folder):
        self.seed = int(os.environ.get("PURCHASES_DIFFERENTIAL_SEED", SEED))
        made = mutations.Mutations(self.seed)
        made.published(FIXTURES)
        self.cases = made.all()
        print(f"differential: {len(self.cases)} tokens, seed {self.seed}")
        self.folder = pathlib.Path(folder)
        (self.folder / "root.der").write_bytes(made.x5c[2])
        shutil.copy(FIXTURES / "certs/mock-root.der", self.folder)
        self.ours = self.judged_by_us()

    def lines(self, cases):
        return "".join(
            json.dumps({**dataclasses.asdict(case), "root": str(self.folder / case.root)}) + "\n" for case in cases
        ).encode()

    def judged_by_us(self):
        batches = collections.defaultdict(list)
        for case in self.cases:
            batches[case.root, case.bundle, case.environment].append(case)
        said = {}
        for (root, bundle, environment), cases in batches.items():
            lines = "".join(
                json.dumps({"id": case.id, "kind": case.kind, "jws": case.token}) + "\n" for case in cases)
            out = purchases(
                "verify", "--lines", "-", "--anchor", self.folder / root, "--bundle-id", bundle, "--app-apple-id",
                mutations.APPLE_ID, "--environment", environment, "--at", NOW, input=lines.encode())
            for line in out.splitlines():
                verdict = json.loads(line)
                said[verdict["id"]] = verdict.get("reason", verdict["verdict"])
        assert len(said) == len(self.cases), f"{len(said)} verdicts for {len(self.cases)} tokens"
        return said


@once
def judged():
    with tempfile.TemporaryDirectory(prefix="purchases-judges.") as folder:
        result = Judged(folder)
        result.theirs = {"Python": once(lambda: by_python(result)), "Node": once(lambda: by_node(result))}
        # Both read the roots while the folder is there; a library that can't be asked says so when it is its turn.
        for ask in result.theirs.values():
            try:
                ask()
            except Exception:
                pass
        return result


def by_python(judged):
    try:
        from appstoreserverlibrary.models.Environment import Environment
        from appstoreserverlibrary.signed_data_verifier import SignedDataVerifier, VerificationException
    except ImportError as error:
        raise Skip(f"app-store-server-library is not here: {error}")

    @functools.cache
    def verifier(root, bundle, environment):
        return SignedDataVerifier(
            [(judged.folder / root).read_bytes()], False, Environment(environment), bundle, mutations.APPLE_ID)

    methods = {
        "transaction": "verify_and_decode_signed_transaction", "renewal-info": "verify_and_decode_renewal_info",
        "notification": "verify_and_decode_notification", "app-transaction": "verify_and_decode_app_transaction",
    }
    said = {}
    for case in judged.cases:
        try:
            getattr(verifier(case.root, case.bundle, case.environment), methods[case.kind])(case.token)
            said[case.id] = "verified"
        except VerificationException as refusal:
            said[case.id] = refusal.status.name
        except Exception as error:
            said[case.id] = f"raised {type(error).__name__}"
    return said


def by_node(judged):
    node = shutil.which("node")
    if node is None:
        raise Skip("Node is not here")
    if not (MODULES / "@apple/app-store-server-library").exists():
        raise Skip("@apple/app-store-server-library could not be fetched")
    run = subprocess.run(
        [node, pathlib.Path(__file__).with_name("apple.cjs"), MODULES, str(mutations.APPLE_ID)],
        input=judged.lines(judged.cases), capture_output=True, timeout=LIMIT_SECONDS)
    assert run.returncode == 0, run.stderr.decode(errors="replace")[-4000:]
    said = {verdict["id"]: verdict["said"] for verdict in map(json.loads, run.stdout.splitlines())}
    assert len(said) == len(judged.cases), f"{len(said)} verdicts for {len(judged.cases)} tokens"
    return said


def rows(heading):
    """First cell and libraries of each row of a table of the page."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and set(cells[0]) != {"-"} and cells[1] != "library":
            assert len(cells) == 3 and cells[2], line
            for library in cells[1].split(", "):
                yield cells[0].strip("`"), library


def compare(library):
    tokens = judged()
    theirs = tokens.theirs[library]()
    accepted = sum(said == "verified" for said in theirs.values())
    ours = sum(said == "verified" for said in tokens.ours.values())
    stricter, laxer = collections.defaultdict(list), collections.defaultdict(list)
    for case in tokens.cases:
        us, them = tokens.ours[case.id], theirs[case.id]
        if them == "verified" != us:
            stricter[us].append(case)
        elif us == "verified" != them:
            laxer[case.change].append(case)
    print(f"{library} accepts {accepted} of {len(tokens.cases)}, we accept {ours}; "
          f"{sum(map(len, stricter.values()))} only they accept, {sum(map(len, laxer.values()))} only we accept")
    faults = []
    for heading, found in (("Only they accept", stricter), ("Only we accept", laxer)):
        explained = {name for name, of in rows(heading) if of == library}
        for name in sorted(set(found) - explained):
            case = found[name][0]
            faults.append(
                f"{heading}: {name!r} ({len(found[name])} tokens) has no row. First: {case.id!r}, {case.kind}, "
                f"{case.environment}: {library} {theirs[case.id]}, we {tokens.ours[case.id]}")
        if tokens.seed == SEED:
            faults += [f"{heading}: nothing shows the row {name!r}" for name in sorted(explained - set(found))]
    assert not faults, f"seed {tokens.seed}\n" + "\n".join(faults)
    # Both must have had something to say: a verifier that refuses everything agrees with everybody who does.
    assert accepted > 200 and ours > 200, f"accepted: {library} {accepted}, we {ours}"


def judge_differences_from_apples_python_library_are_explained():
    compare("Python")


def judge_differences_from_apples_node_library_are_explained():
    compare("Node")
