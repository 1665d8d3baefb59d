"""Drives the real executable as separate processes while a day's purchases pass through it and faults are thrown, and has
what is left judged by `checker.py`.

    python torture.py --program PATH --log kafka|sqlite --store postgres|sqlite [--minutes M] [--seed S] [--accounts N] [--debug-program PATH]

The same seed gives the same load and the same list of faults; when each one strikes depends on the machine. Exit status 0:
nothing lost, nothing doubled, everything worked off; 1 otherwise, and the folder with all logs is kept and named.
"""

import argparse
import collections
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import checker
import evidence
from faults import Faults
from load import Load, corpus, forgeries, shuffled
from place import Place
from processes import say

# Of the demo's day, with some fourteen posts each, repetitions included: what two cores with three brokers on them take while
# faults strike. Half an hour makes a hundred thousand posts.
ACCOUNTS_A_MINUTE = 240
# The pipeline must be at rest so soon after the last fault and the last post.
REST_SECONDS = 60
# The load ends before the faults do; what it still has to post when they are over was held up by them.
LOAD_SHARE = 0.9
LATE_SECONDS = 300
DUPLICATES = 0.25  # of the events, so that a fifth of all posts are repetitions
FORGED = 0.02  # of the proofs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--debug-program", type=pathlib.Path, help="a debug build, for crashes at numbered steps")
    parser.add_argument("--log", choices=["kafka", "sqlite"], default="kafka")
    parser.add_argument("--store", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--accounts", type=int, default=None, help="of the demo's day; about fourteen posts each")
    parser.add_argument("--only", type=lambda text: text.split(","), help="these kinds of faults, as the report names them")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs in any case")
    options = parser.parse_args()
    options.program, options.has_relays = str(options.program.resolve()), True
    if options.debug_program:
        options.debug_program = str(options.debug_program.resolve())
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    accounts = options.accounts or max(100, int(options.minutes * ACCOUNTS_A_MINUTE))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="purchases-torture."))
    folder.chmod(0o755)
    say(f"torture on {options.log} and {options.store}: seed {seed}, {options.minutes} minutes, {accounts} accounts, in {folder}")
    place, wrong = None, []
    # Whoever ends this early wants no broker and no process left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        dice = random.Random(seed)
        posts, kept, peace_log, peace_store = corpus(options.program, folder, accounts, seed % 1_000)
        forged, digests = forgeries(posts, dice, FORGED)
        order = shuffled(posts + forged, dice, DUPLICATES)
        place = Place(options, folder, kept)
        place.start()
        place.await_work()
        wrong = run(options, place, order, dice, (peace_log, peace_store), digests)
    except BaseException:
        say(f"seed {seed}: broken off; everything is kept in {folder}")
        raise
    finally:
        # What is being put away is put away, however often one is told to end.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if place is not None:
            try:
                place.halt()
            finally:
                place.end()
    for line in wrong:
        say(f"WRONG {line}")
    if wrong:
        say(f"seed {seed}: {len(wrong)} things are wrong; everything is kept in {folder}")
        return 1
    if not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    say(f"seed {seed}: nothing lost, nothing doubled")
    return 0


def run(options, place, order, dice, peace, forged):
    wrong, broken_off = [], False
    faults = Faults(place, dice)
    load = Load(place.gateways, order, options.minutes * 60 * LOAD_SHARE)
    end = time.monotonic() + options.minutes * 60
    watching = threading.Event()

    def watch():
        while not watching.wait(0.2):
            place.watch()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        while time.monotonic() < end:
            time.sleep(dice.uniform(0.2, 2))
            try:
                say(faults.throw())
            except Exception as error:
                said = getattr(error, "stderr", None) or b""
                wrong.append(f"{type(error).__name__}: {error} {said.decode(errors='replace')[-500:]}")
                say(wrong[-1])
                broken_off = True
                break
        last_fault = time.monotonic()
        say(f"no more faults; {load.count} of {load.total} posts taken, {load.retried} tried again")
        if not load.wait(0 if broken_off else LATE_SECONDS):
            wrong.append(f"the load did not come to its end: {load.count} of {load.total}")
            load.stop()
        loaded = time.monotonic()
        while not broken_off and (left := place.lag()):
            if time.monotonic() - max(loaded, last_fault) > REST_SECONDS:
                wrong += [f"not at rest {REST_SECONDS} s after the last fault and post: {line}" for line in left]
                place.show_state()
                break
            time.sleep(0.5)
        now = time.monotonic()
        if not broken_off and now - max(loaded, last_fault) > REST_SECONDS:
            wrong.append(f"at rest only {now - max(loaded, last_fault):.0f} s after the last fault and post")
        say(f"at rest {now - loaded:.1f} s after the last post, {now - last_fault:.1f} s after the last fault")
    finally:
        watching.set()
        watcher.join()
        load.stop()
    wrong += [f"refused: {refusal}" for refusal in load.refused[:5]]
    wrong += place.halt()
    if broken_off:
        return wrong
    say("judging")
    found = evidence.read(place.log, place.direct_store)
    found.accepted, found.poison, found.forged = load.accepted, faults.poison, forged
    result = checker.check(found)
    wrong += list(result.lines())
    wrong += checker.differences(evidence.read(*peace), found)
    wrong += replayed(place)
    audit = place.run("audit", "verify", *place.common, "--audit-key", place.folder / "audit-key", check=False)
    if audit.returncode != 0:
        wrong.append(f"audit verify: {audit.stdout.decode(errors='replace')[-1500:]}{audit.stderr.decode(errors='replace')[-500:]}")
    ends = place.extra_ends
    for process in place.processes.values():
        ends.update({f"{process.name} {status}": count for status, count in process.ends.items()})
    say(f"events: {load.total} posts, {len(load.accepted)} ids, {({topic: len(records) for topic, records in found.topics.items()})}")
    say(f"faults: {sum(faults.thrown.values())} {dict(sorted(faults.thrown.items()))}")
    if faults.missed:
        say(f"met nothing: {dict(sorted(faults.missed.items()))}")
    # Nobody else has the name of any of them; a zombie whose successor is there is not counted here.
    wrong += [f"{name} is how a process ended by itself, {count} times" for name, count in sorted(ends.items())]
    return wrong


def replayed(place):
    """The state is the fold of the log from zero, by the production stage."""
    into, at = place.folder / "replay.db", time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    words = ["replay", "entitlements", *place.common, "--into", f"sqlite:{into}", "--catalogue", place.catalogue, "--at", at]
    answer = place.run(*words, check=False)
    if answer.returncode == 0:
        return []
    return [f"replay: {answer.stdout.decode(errors='replace')[-800:]}{answer.stderr.decode(errors='replace')[-800:]}"]


if __name__ == "__main__":
    sys.exit(main())
