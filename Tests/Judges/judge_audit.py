"""Go's transparency log library over an exported audit log and over single proofs.

The program under `tlog/` knows nothing of this project but the form of an exported file: it builds every tree again with
`golang.org/x/mod/sumdb/tlog` and opens every checkpoint with `golang.org/x/mod/sumdb/note`.
"""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from judging import ROOT, Skip, purchases

SOURCE = pathlib.Path(__file__).resolve().parent / "tlog"
CACHE = ROOT / ".cache/judges-go"
# What Go says when its module proxy can't be reached; anything else is a fault of ours.
UNREACHABLE = re.compile(r"dial tcp|no such host|i/o timeout|connection refused|proxyconnect|network is unreachable", re.I)
CATALOGUE = {
    "version": "1",
    "products": [{"id": "coins.100", "type": "consumable", "credits": {"unit": "coins", "amount": 100}}],
}


@functools.cache
def tlog():
    """The compiled judge."""
    go = shutil.which("go")
    if go is None:
        raise Skip("Go is not here")
    program = CACHE / "tlog"
    environment = dict(os.environ, GOFLAGS="-mod=readonly -buildvcs=false", GOTOOLCHAIN="local")
    built = subprocess.run(
        [go, "build", "-o", str(program), "."], cwd=SOURCE, capture_output=True, env=environment, timeout=300
    )
    said = built.stderr.decode(errors="replace")
    if built.returncode != 0 and UNREACHABLE.search(said):
        raise Skip("Go's module proxy could not be reached")
    assert built.returncode == 0, said
    return program


def judged(*words):
    run = subprocess.run([str(tlog()), *map(str, words)], capture_output=True, timeout=300)
    return run.returncode, (run.stdout + run.stderr).decode(errors="replace")


class Audited:
    """A small log that was worked off, its export, its public key and a proof."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / "catalogue.json").write_text(json.dumps(CATALOGUE))
        self.urls = ["--log", f"sqlite:{self.folder / 'log.db'}", "--store", f"sqlite:{self.folder / 'store.db'}"]
        failure = {"domain": "SKErrorDomain", "code": 2, "userCancelled": True}
        lines = [
            {"type": "payment.failed", "environment": "Sandbox", "account": f"a{number % 7}", "attemptId": str(number),
             "productId": "coins.100", "failure": failure}
            for number in range(200)
        ]
        for part in (lines[:70], lines[70:]):
            text = "".join(json.dumps(line) + "\n" for line in part).encode()
            purchases("publish", "--file", "-", *self.urls, input=text)
            purchases(
                "run", "--until-idle", "--bundle-id", "com.example.app", "--environment", "Sandbox", "--catalogue",
                self.folder / "catalogue.json", *self.urls,
            )
        self.export = self.folder / "export"
        purchases("audit", "export", "--to", self.export, *self.urls)
        manifest = (self.export / "MANIFEST").read_text()
        self.key = re.search(r"^key (.+)$", manifest, re.M)[1]

    def prove(self, place, index):
        path = self.folder / "proof"
        path.write_bytes(purchases("audit", "prove", place, "--index", index, *self.urls))
        return path


def audited(judge):
    @functools.wraps(judge)
    def wrapped():
        tlog()
        with tempfile.TemporaryDirectory(prefix="purchases-judges.") as folder:
            judge(Audited(folder))

    return wrapped


@audited
def judge_go_accepts_our_audit_log(log):
    status, said = judged("export", log.export, log.key)
    assert status == 0, said
    records, notes, summary = map(int, re.findall(r"[0-9]+", said))
    assert records >= 600 and notes >= 20 and summary >= 18, said


@audited
def judge_go_refuses_a_changed_record(log):
    path = max(log.export.glob("*received-*.records"), key=lambda path: path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    status, said = judged("export", log.export, log.key)
    assert status == 1 and "another root" in said, said


@audited
def judge_go_accepts_our_proofs_and_no_altered_one(log):
    place = max(log.export.glob("purchases.owned-*.records"), key=lambda path: path.stat().st_size).name
    place = "owned/" + place.split("-")[-1].split(".")[0]
    for index in (0, 1, 20):
        proof = log.prove(place, index)
        status, said = judged("proof", proof, log.key)
        assert status == 0, said
        text = proof.read_text()
        proof.write_text(text.replace(f"index {index}\n", f"index {index + 1}\n"))
        assert judged("proof", proof, log.key)[0] == 1
        purchases("audit", "check", "--file", proof, "--vkey", log.key, status=4)
        proof.write_text(text)
        purchases("audit", "check", "--file", proof, "--vkey", log.key)
