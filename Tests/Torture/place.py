"""Brokers, database, disk, gateways and stages of one run, with a relay in each way between them."""

import collections
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time

from processes import Process, say
from relay import Relay

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAGES = ["verification", "ownership", "entitlements", "auditing"]
WITH_STATE = STAGES[1:]
BUNDLE, APPLE_ID = "com.example.harbour", 1600000001
PARTITIONS = 4
BROKERS = 3
# So that two processes always own chains of one account, and a partition has somebody to move to.
MEMBERS = 2
# A stage that stands still for longer has lost its transaction, its session and its partitions.
SESSION_MS = 6_000
# Brokers that have just begun, and two cores for some twenty processes.
START_SECONDS = 120
# Of the file system for the SQLite files, a fixed part and one per minute: what a run writes fits in it.
DISK_BYTES, DISK_BYTES_A_MINUTE = 512 << 20, 100 << 20


class Place:
    def __init__(self, options, folder, kept):
        self.options, self.folder = options, folder
        self.relays, self.processes, self.extras = [], {}, 0
        self.extra_ends, self.gateways, self.kept = collections.Counter(), [], kept
        self.lock = threading.Lock()
        (folder / "logs").mkdir()
        self.kafka, self.postgres, self.disk = folder / "kafka", folder / "postgres", folder / "disk"
        self.environment, self.disk_control, self.is_mounted = {}, None, False
        self.database_relay = None

    def start(self):
        """Whoever calls this calls `end`, also when it fails."""
        options, folder, kept = self.options, self.folder, self.kept
        if "sqlite" in (options.log, options.store):
            self._make_disk()
        common = []
        if options.log == "kafka" and not options.has_relays:
            self.script("kafka", "start", self.kafka, "--brokers", BROKERS)
            self.log = "kafka://" + (self.kafka / "bootstrap").read_text().strip()
        elif options.log == "kafka":
            self.relays = [Relay(lambda number=number: self._broker(number)) for number in range(BROKERS)]
            ports = ",".join(str(relay.port) for relay in self.relays)
            self.script("kafka", "start", self.kafka, "--brokers", BROKERS, "--advertise", ports)
            self.log = "kafka://" + ",".join(f"127.0.0.1:{relay.port}" for relay in self.relays)
        else:
            self.log = f"sqlite:{self.disk / 'log.db'}"
        if options.log == "kafka":
            common += ["--replication", BROKERS, "--kafka", f"session.timeout.ms={SESSION_MS}"]
            common += ["--kafka", f"transaction.timeout.ms={SESSION_MS}"]
        if options.store == "postgres":
            self.script("postgres", "start", self.postgres)
            self.direct_store = (self.postgres / "url").read_text().strip()
            self.socket = pathlib.Path((self.postgres / "home").read_text().strip()) / ".s.PGSQL.5432"
            self.store = self.direct_store
            if options.has_relays:
                self.database_relay = Relay(self._database)
                self.store = f"postgres://purchases@127.0.0.1:{self.database_relay.port}/purchases"
        else:
            self.store = self.direct_store = f"sqlite:{self.disk / 'store.db'}"
        self.catalogue = kept / "catalogue.json"
        common += ["--log", self.log, "--store", self.store, "--partitions", PARTITIONS]
        self.common = common
        self.trust = ["--bundle-id", BUNDLE, "--app-apple-id", APPLE_ID, "--anchor", kept / "root.der"]
        # One after the other: whoever comes first makes the topics and the tables.
        self.run("topics", *common)
        for number in range(2):
            port = _free_port()
            self.gateways.append(("127.0.0.1", port))
            self.add(f"gateway-{number}", ["gateway", *common, "--listen", f"127.0.0.1:{port}"])
        for number in range(MEMBERS):
            for stage in STAGES:
                self.add_stage(stage, f"{stage}-{number}", named=True)

    def _broker(self, number):
        lines = (self.kafka / "ports").read_text().split() if (self.kafka / "ports").exists() else []
        return socket.create_connection(("127.0.0.1", int(lines[number])), timeout=10) if number < len(lines) else None

    def _database(self):
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self.socket))
        return server

    def _make_disk(self):
        """A small file system, where we may make one; and a library between the processes and whatever disk it is."""
        self.disk.mkdir()
        size = int(DISK_BYTES + self.options.minutes * DISK_BYTES_A_MINUTE)
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "purchases-torture", str(self.disk)]
        self.is_mounted = os.geteuid() == 0 and subprocess.run(words, capture_output=True).returncode == 0
        if not self.is_mounted:
            say("no small file system can be mounted here: a full disk is played by the library before the disk alone")
        library, control = self.folder / "disk.so", self.folder / "disk.control"
        words = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, ROOT / "Tests/Torture/disk.c", "-ldl"]
        subprocess.run([str(word) for word in words], check=True)
        control.write_bytes(b"\0\0")
        self.disk_control = control
        self.environment = {"LD_PRELOAD": str(library), "TORTURE_DISK": str(control)}

    def strike_disk(self, mode, share=255):
        with open(self.disk_control, "r+b") as file:
            file.write(bytes([ord(mode), share]))

    def heal_disk(self):
        with open(self.disk_control, "r+b") as file:
            file.write(b"\0\0")

    def script(self, name, *words, check=True):
        words = [str(ROOT / "Scripts" / name), *map(str, words)]
        with open(self.folder / "scripts.log", "ab") as log:
            return subprocess.run(words, check=check, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def run(self, *words, check=True):
        words = [self.options.program, *map(str, words)]
        return subprocess.run(words, check=check, capture_output=True, cwd=self.folder)

    def sql(self, text, database="purchases"):
        """Asks the database itself, past the relay."""
        url = self.direct_store.replace("///purchases", f"///{database}")
        words = ["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", text]
        return subprocess.run(words, check=True, capture_output=True).stdout.decode().splitlines()

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

    def _named(self, kinds):
        with self.lock:
            return [process for name, process in sorted(self.processes.items()) if name.split("-")[0] in kinds]

    def members(self, stage=None):
        return self._named([stage] if stage else STAGES)

    def gateway_processes(self):
        return self._named(["gateway"])

    def await_work(self):
        """Until every stage has its share: what strikes earlier meets a deployment that is still being made."""
        end = time.monotonic() + START_SECONDS
        for process in self.members():
            while b'"assigned"' not in process.log.read_bytes():
                if time.monotonic() > end:
                    raise RuntimeError(f"{process.name} is not at work after {START_SECONDS} s: {process.log.read_text(errors='replace')[-500:]}")
                time.sleep(0.05)

    def watch(self):
        for process in self._named([*STAGES, "gateway"]):
            ended = process.watch()
            if ended is not None:
                say(f"{process.name} ended with {ended[0]} and was started again: {ended[1]}")

    def halt(self):
        """A planned stop of everything, one after the other would take the group's time each: all at once."""
        found = self._named([*STAGES, "gateway"])
        statuses = {}

        def stop(process):
            statuses[process.name] = process.stop()

        threads = [threading.Thread(target=stop, args=(process,)) for process in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [f"{name} ended with {status} after SIGTERM" for name, status in sorted(statuses.items()) if status != 0]

    def begin(self):
        for process in self._named([*STAGES, "gateway"]):
            process.begin()

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
        for process in self.members():
            process.show_threads()

    def end(self):
        if self.options.log == "kafka":
            self.script("kafka", "stop", self.kafka, check=False)
        if self.options.store == "postgres":
            self.script("postgres", "stop", self.postgres, check=False)
        if self.is_mounted:
            try:
                # What is on it must outlive it: it is what is looked at when something is wrong.
                (self.disk / "ballast").unlink(missing_ok=True)
                shutil.copytree(self.disk, self.folder / "disk-copy", dirs_exist_ok=True)
            finally:
                subprocess.run(["umount", str(self.disk)], check=True)


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
