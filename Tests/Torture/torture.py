"""Drives the real executable as separate processes while a day's purchases pass through it and faults are thrown, and has
what is left judged by `checker.py`.

    python torture.py --program PATH --log kafka|sqlite --store postgres|sqlite [--minutes M] [--seed S] [--accounts N] [--debug-program PATH]

The same seed gives the same load and the same list of faults; when each one strikes depends on the machine. Exit status 0:
nothing lost, nothing doubled, everything worked off; 1 otherwise, and the folder with all logs is kept and named.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import checker
import evidence
from load import Load, corpus, shuffled
from relay import Relay

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAGES = ["verification", "ownership", "entitlements", "auditing"]
BUNDLE, APPLE_ID = "com.example.harbour", 1600000001
PARTITIONS = 4
BROKERS = 3
# Chosen so that a stage that stands still for `STILL` seconds has lost its transaction, its session and its partitions.
SESSION_MS, STILL = 6_000, (8, 14)
# The pipeline must be at rest so soon after the last post.
REST_SECONDS = 60
# A step that isn't reached within this isn't: nothing was to be done.
CRASH_SECONDS = 15
# A process that was told to stop and has not after this hangs.
STOP_SECONDS = 60
DUPLICATES = 0.25  # of the events, so that a fifth of all posts are repetitions


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Process:
    """One process of the deployment. It is started again whenever it ends unasked, as a supervisor would."""

    def __init__(self, place, name, words):
        self.place, self.name, self.words = place, name, words
        self.is_wanted, self.is_still = True, False
        self.ends = collections.Counter()
        self.lock = threading.Lock()
        self.start()

    def start(self, program=None, more=()):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PURCHASES_")}
        environment |= dict(more)
        with open(self.place.folder / f"{self.name}.log", "ab") as log:
            self.child = subprocess.Popen(
                [str(word) for word in [program or self.words[0], *self.words[1:]]], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment,
                cwd=self.place.folder,
            )

    def watch(self):
        """Starts it again where it has ended; answers the status it ended with."""
        with self.lock:
            status = self.child.poll()
            if status is None or not self.is_wanted:
                return None
            self.ends[status] += 1
            self.start()
            return status

    def kill(self):
        with self.lock:
            self.child.kill()
            self.child.wait()
            if self.is_wanted:
                self.start()

    def crash(self, program, points):
        """Ends at each of these steps in turn, in a build that knows them; answers how it ended each time."""
        with self.lock:
            statuses = []
            for point in points:
                self.child.kill()
                self.child.wait()
                self.start(program, {"PURCHASES_CRASH_AT": point}.items())
                try:
                    statuses.append(self.child.wait(CRASH_SECONDS))
                except subprocess.TimeoutExpired:
                    statuses.append(None)
            self.child.kill()
            self.child.wait()
            self.start()
            return statuses

    def still(self):
        self.is_still = True
        self.child.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.is_still = False
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGCONT)

    def stop(self):
        """A planned stop: SIGTERM, and the status it ended with; None when it had to be killed."""
        with self.lock:
            self.is_wanted = False
            if self.is_still:
                self.go_on()
            if self.child.poll() is None:
                self.child.terminate()
            try:
                return self.child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
                return None


class Place:
    """Brokers, database, gateway and stages of one run."""

    def __init__(self, options, folder, kept):
        self.options, self.folder = options, folder
        self.relays, self.processes, self.extras = [], {}, 0
        self.lock = threading.Lock()
        self.kafka = folder / "kafka"
        self.postgres = folder / "postgres"
        common = []
        if options.log == "kafka":
            self.relays = [Relay(lambda number=number: self._port(number)) for number in range(BROKERS)]
            ports = ",".join(str(relay.port) for relay in self.relays)
            self.script("kafka", "start", self.kafka, "--brokers", BROKERS, "--advertise", ports)
            self.log = "kafka://" + ",".join(f"127.0.0.1:{relay.port}" for relay in self.relays)
            common += ["--replication", BROKERS, "--kafka", f"session.timeout.ms={SESSION_MS}"]
            common += ["--kafka", f"transaction.timeout.ms={SESSION_MS}"]
        else:
            self.log = f"sqlite:{folder / 'log.db'}"
        if options.store == "postgres":
            self.script("postgres", "start", self.postgres)
            self.store = (self.postgres / "url").read_text().strip()
        else:
            self.store = f"sqlite:{folder / 'store.db'}"
        self.catalogue = kept / "catalogue.json"
        common += ["--log", self.log, "--store", self.store, "--partitions", PARTITIONS]
        self.common = common
        self.trust = ["--bundle-id", BUNDLE, "--app-apple-id", APPLE_ID, "--anchor", kept / "root.der"]
        self.gateways = []
        # One after the other: whoever comes first makes the topics and the tables.
        self.run("topics", *common)
        for number in range(2):
            port = _free_port()
            self.gateways.append(("127.0.0.1", port))
            self.add(f"gateway-{number}", ["gateway", *common, "--listen", f"127.0.0.1:{port}"])
        for stage in STAGES:
            self.add_stage(stage, f"{stage}-0", named=True)

    def _port(self, number):
        lines = (self.kafka / "ports").read_text().split() if (self.kafka / "ports").exists() else []
        return int(lines[number]) if number < len(lines) else None

    def script(self, name, *words, check=True):
        words = [str(ROOT / "Scripts" / name), *map(str, words)]
        with open(self.folder / "scripts.log", "ab") as log:
            return subprocess.run(words, check=check, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def run(self, *words, check=True):
        words = [self.options.program, *map(str, words)]
        return subprocess.run(words, check=check, capture_output=True, cwd=self.folder)

    def add(self, name, words):
        with self.lock:
            self.processes[name] = Process(self, name, [self.options.program, *words])

    def add_stage(self, stage, name, named=False):
        words = ["stage", stage, *self.common, "--audit-key", self.folder / "audit-key"]
        if stage == "verification":
            words += self.trust
        if stage == "entitlements":
            words += ["--catalogue", self.catalogue]
        if named:
            words += ["--instance", name]
        self.add(name, words)

    def members(self, stage=None):
        with self.lock:
            return [p for name, p in sorted(self.processes.items()) if name.split("-")[0] in ([stage] if stage else STAGES)]

    def watch(self):
        with self.lock:
            found = list(self.processes.values())
        for process in found:
            status = process.watch()
            if status is not None:
                say(f"{process.name} ended with {status} and was started again")

    def lag(self):
        """What `doctor` says is left to do: the checks that are not well, lag first."""
        answer = self.run("doctor", "--json", *self.common, check=False)
        left = []
        for line in answer.stdout.decode(errors="replace").splitlines():
            found = json.loads(line)
            if found.get("check", "").endswith(" lag") and not found["text"].startswith("0 records"):
                left.append(f"{found['check']}: {found['text']}")
            if found.get("check", "").endswith(("offsets", "store", "log")) and found["outcome"] != "well":
                left.append(f"{found['check']}: {found['text']}")
        if answer.returncode not in (0, 4):
            left.append(f"doctor ended with {answer.returncode}: {answer.stderr.decode(errors='replace')[-500:]}")
        return left

    def show_state(self):
        """Where every stage stands, for whoever has to find out why: what the groups say, and threads where a debugger is
        here."""
        if self.options.log == "kafka":
            servers = self.log.removeprefix("kafka://")
            for words in (["--describe", "--all-groups"], ["--describe", "--all-groups", "--members", "--verbose"]):
                self.script("kafka", "tool", "groups", "--bootstrap-server", servers, *words, check=False)
        if shutil.which("gdb"):
            for process in self.members():
                with open(self.folder / f"{process.name}.threads", "wb") as file:
                    words = ["gdb", "-p", str(process.child.pid), "-batch", "-ex", "thread apply all bt 25"]
                    subprocess.run(words, stdout=file, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def stop(self):
        """Ends every process as an operator would, and names those that did not end well."""
        with self.lock:
            found = list(self.processes.values())
        return [f"{process.name} ended with {status} after SIGTERM" for process in found if (status := process.stop()) != 0]

    def end(self):
        if self.options.log == "kafka":
            self.script("kafka", "stop", self.kafka, check=False)
        if self.options.store == "postgres":
            self.script("postgres", "stop", self.postgres, check=False)


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Faults:
    """Each method `f_…` throws one kind of fault and takes it back. The dice are the seed's."""

    def __init__(self, place, dice):
        self.place, self.dice = place, dice
        self.thrown = collections.Counter()
        self.poison = set()
        names = [name for name in dir(self) if name.startswith("f_")]
        kinds = {"crash": place.options.debug_program is not None, "kafka": place.options.log == "kafka", "postgres": place.options.store == "postgres"}
        self.kinds = [name for name in names if kinds.get(name.split("_")[1], True)]
        if place.options.only:
            self.kinds = [name for name in self.kinds if name.removeprefix("f_") in place.options.only]

    def throw(self):
        name = self.dice.choice(self.kinds)
        said = getattr(self, name)()
        self.thrown[name.removeprefix("f_")] += 1
        say(f"fault {name.removeprefix('f_')}: {said}")

    def _pause(self, low, high):
        time.sleep(self.dice.uniform(low, high))

    def f_process_kill_stage(self):
        victim = self.dice.choice(self.place.members())
        victim.kill()
        return victim.name

    def f_process_kill_all_of_a_stage(self):
        stage = self.dice.choice(STAGES)
        for victim in self.place.members(stage):
            victim.kill()
        return stage

    def f_crash_stage(self):
        """At a numbered step of the commit protocol, or in the recovery that follows."""
        stage, program = self.dice.choice(STAGES), self.place.options.debug_program
        steps = ["1-polled", "2-decided", "4-log-begun", "5-log-committed"]
        if stage != "verification":
            steps += ["3-store-committed", "6-recovery-read", "7-recovery-published"]
        step = self.dice.choice(steps)
        points = [f"{step}:{self.dice.randint(1, 5)}"]
        if step[0] in "67":
            # Only what lies in the store and not in the log is recovered.
            points = ["3-store-committed:1", f"{step}:1"]
        statuses = self.place.processes[f"{stage}-0"].crash(program, points)
        return f"{stage} at {' and '.join(points)}, ended with {statuses}"

    def f_process_kill_gateway(self):
        victim = self.dice.choice([p for name, p in sorted(self.place.processes.items()) if name.startswith("gateway")])
        victim.kill()
        return victim.name

    def f_process_zombie(self):
        """Stands still past its transaction and its session, and goes on as if nothing had been."""
        victim = self.dice.choice(self.place.members())
        victim.still()
        self._pause(*STILL)
        victim.go_on()
        return victim.name

    def f_process_zombie_with_successor(self):
        """The successor under the same name has its share when the old one goes on: the hardest instant."""
        stage = self.dice.choice(STAGES)
        old = self.place.processes[f"{stage}-0"]
        with old.lock:
            child, log = old.child, self.place.folder / f"{old.name}.log"
            size = log.stat().st_size
            child.send_signal(signal.SIGSTOP)
            old.start()
        end = time.monotonic() + STILL[1]
        while time.monotonic() < end and b'"assigned"' not in log.read_bytes()[size:]:
            time.sleep(0.01)
        child.send_signal(signal.SIGCONT)
        try:
            status = child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise RuntimeError(f"the zombie of {stage} neither stopped nor was fenced in {STOP_SECONDS} s") from None
        return f"{stage}, the zombie ended with {status}"

    def f_process_come_and_go(self):
        """Members are added and stopped every two seconds."""
        stage, rounds = self.dice.choice(STAGES), self.dice.randint(2, 4)
        for _ in range(rounds):
            self.place.extras += 1
            name = f"{stage}-x{self.place.extras}"
            self.place.add_stage(stage, name)
            time.sleep(2)
            with self.place.lock:
                extra = self.place.processes.pop(name)
            status = extra.stop()
            if status != 0:
                raise RuntimeError(f"{name} ended with {status} after SIGTERM")
        return f"{stage} {rounds} times"

    def _resume(self, *numbers):
        self.place.script("kafka", "resume", self.place.kafka, *numbers)

    def f_kafka_kill_broker(self):
        number = self.dice.randint(1, BROKERS)
        self.place.script("kafka", "kill9", self.place.kafka, number)
        # Longer than the controller waits for a broker, so that all it led has moved.
        self._pause(2, 9)
        self._resume(number)
        return f"broker {number}"

    def f_kafka_lose_quorum(self):
        numbers = self.dice.sample(range(1, BROKERS + 1), 2)
        for number in numbers:
            self.place.script("kafka", "kill9", self.place.kafka, number)
        self._pause(1, 4)
        self._resume(*numbers)
        return f"brokers {numbers}"

    def f_kafka_still_broker(self):
        number = self.dice.randint(1, BROKERS)
        process = int((self.place.kafka / f"pid{number}").read_text())
        os.kill(process, signal.SIGSTOP)
        self._pause(1, 10)
        os.kill(process, signal.SIGCONT)
        return f"broker {number}"

    def f_kafka_connections_end(self):
        for relay in self.place.relays:
            relay.end_some(self.dice, 0.5)
        return "half of them"

    def f_kafka_connections_half_open(self):
        held = [(relay, relay.hold_some(self.dice, 0.3)) for relay in self.place.relays]
        self._pause(2, 12)
        for relay, connections in held:
            relay.release(connections)
        return f"{sum(len(connections) for _, connections in held)} connections"

    def f_kafka_network_slow(self):
        delay = self.dice.uniform(0.005, 0.1)
        for relay in self.place.relays:
            relay.delay = delay
        self._pause(2, 5)
        for relay in self.place.relays:
            relay.heal()
        return f"{delay * 1000:.0f} ms"

    def f_kafka_network_cut(self):
        relay = self.dice.choice(self.place.relays)
        relay.cut()
        self._pause(1, 8)
        relay.heal()
        return "one broker"

    def f_kafka_poison(self):
        """What no event is, from a producer that is not ours."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.place.log.removeprefix("kafka://"), "acks": "all"})
        head = {"ce_specversion": "1.0", "ce_id": f"poison-{self.dice.random()}", "ce_source": "/torture"}
        head |= {"content-type": "application/json"}
        kinds = [
            (self.dice.randbytes(200), {}),
            (b'{"type":"payment.failed"', {**head, "ce_type": "payment.failed.v1"}),
            (b"{}", {**head, "ce_type": "payment.unheard-of.v1"}),
            (b"\0" * (900 << 10), {}),
            (None, {**head, "ce_type": "payment.failed.v1"}),
            (b'{"a":1}', {**head, "ce_type": "payment.purchased.v1"}),
        ]
        told = []
        for value, headers in kinds:
            key = self.dice.choice([None, b"", b"Production/1", self.dice.randbytes(8)])
            producer.produce(
                "purchases.received", key=key, value=value, headers=list(headers.items()),
                on_delivery=lambda error, message: told.append((error, message.partition(), message.offset())),
            )
        if producer.flush(120) or any(error for error, _, _ in told):
            raise RuntimeError(f"poison was not taken: {told}")
        self.poison |= {(partition, offset) for _, partition, offset in told}
        return f"{len(told)} records"

    def f_postgres_restart_immediate(self):
        self.place.script("postgres", "restart", self.place.postgres, "immediate")
        return "the crash"

    def f_postgres_connections_end(self):
        query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        for _ in range(self.dice.randint(1, 5)):
            subprocess.run(["psql", "-X", "-q", "-d", self.place.store, "-c", query], capture_output=True, check=True)
            self._pause(0, 0.3)
        return "all of them"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--debug-program", type=pathlib.Path, help="a debug build, for crashes at numbered steps")
    parser.add_argument("--log", choices=["kafka", "sqlite"], default="kafka")
    parser.add_argument("--store", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--accounts", type=int, default=None, help="of the demo's day; about eleven events each")
    parser.add_argument("--only", type=lambda text: text.split(","), help="these kinds of faults, as the report names them")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs in any case")
    options = parser.parse_args()
    options.program = str(options.program.resolve())
    if options.debug_program:
        options.debug_program = str(options.debug_program.resolve())
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    accounts = options.accounts or max(100, int(options.minutes * 250))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="purchases-torture."))
    folder.chmod(0o755)
    say(f"torture on {options.log} and {options.store}: seed {seed}, {options.minutes} minutes, {accounts} accounts, in {folder}")
    place, wrong = None, []
    try:
        dice = random.Random(seed)
        posts, kept, peace_log, peace_store = corpus(options.program, folder, accounts, seed % 1_000)
        order = shuffled(posts, dice, DUPLICATES)
        place = Place(options, folder, kept)
        wrong = run(options, place, order, dice, (peace_log, peace_store))
    finally:
        if place is not None:
            place.stop()
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


def run(options, place, order, dice, peace):
    wrong = []
    faults = Faults(place, dice)
    load = Load(place.gateways, order, options.minutes * 60 * 0.9)
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
                faults.throw()
            except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                wrong.append(f"{type(error).__name__}: {error}")
                break
        rest_began = time.monotonic()
        say(f"no more faults; {load.count} of {load.total} posts taken, {load.retried} tried again")
        if not load.wait(REST_SECONDS + 300):
            wrong.append(f"the load did not come to its end: {load.count} of {load.total}")
            load.stop()
        loaded = time.monotonic()
        while left := place.lag():
            if time.monotonic() - loaded > REST_SECONDS:
                wrong += [f"not at rest {REST_SECONDS} s after the last post: {line}" for line in left]
                place.show_state()
                break
            time.sleep(0.5)
        say(f"at rest {time.monotonic() - loaded:.1f} s after the last post, {time.monotonic() - rest_began:.1f} s after the last fault")
    finally:
        watching.set()
        watcher.join()
        load.stop()
    wrong += [f"refused: {refusal}" for refusal in load.refused[:5]]
    wrong += place.stop()
    say("judging")
    found = evidence.read(place.log, place.store)
    found.accepted, found.poison = load.accepted, faults.poison
    result = checker.check(found)
    wrong += list(result.lines())
    wrong += checker.differences(evidence.read(*peace), found)
    wrong += replayed(place)
    audit = place.run("audit", "verify", *place.common, "--audit-key", place.folder / "audit-key", check=False)
    if audit.returncode != 0:
        wrong.append(f"audit verify: {audit.stdout.decode(errors='replace')[-1500:]}{audit.stderr.decode(errors='replace')[-500:]}")
    ends = collections.Counter()
    for process in place.processes.values():
        ends.update({f"{process.name} {status}": count for status, count in process.ends.items()})
    say(f"events: {load.total} posts, {len(load.accepted)} ids, {({topic: len(records) for topic, records in found.topics.items()})}")
    say(f"faults: {sum(faults.thrown.values())} {dict(sorted(faults.thrown.items()))}")
    say(f"ended by themselves: {dict(sorted(ends.items()))}")
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
