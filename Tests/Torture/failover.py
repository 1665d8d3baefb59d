"""How long work stands still after a fault, beside a plain client of the same brokers in the same run.

    python failover.py --program PATH [--store postgres|sqlite] [--rounds N] [--rate N]

Failed payments come in at a steady rate, each of which the whole pipeline answers with one record in `entitlements`; beside
it a client that does nothing but copy records in transactions (librdkafka, one hop) runs at the same rate on topics of its
own. A fault costs the time until the last record that is late because of it has come out. Prints, for each kind of fault, the
median, least and greatest of the pipeline, of the plain client, and of what the pipeline takes longer. A round in which the
machine itself stood still for more than a second is told and taken again, up to N times.
"""

import argparse
import http.client
import json
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid

from faults import Faults, java_hash
from load import ANSWER_SECONDS
from place import SESSION_MS, STAGES, Place
from processes import say

# A record that takes longer is late: some ten times what one takes in peace.
LATE_SECONDS = 1.0
# Work is at peace again when nothing has been late for so long.
PEACE_SECONDS = 10
# Nothing that is measured here lasts as long.
FAULT_SECONDS = 120
THREADS = 8
TRANSACTION_SECONDS = SESSION_MS / 1000
# The topics that a record goes through.
WAY = ["received", "verified", "owned", "entitlements"]
ACCOUNT = re.compile(rb'"account": ?"([^"]+)"')
# What librdkafka says of brokers that are killed on purpose.
QUIET = {"log_level": 0}


class Flow:
    """Records that go in at a steady rate and are expected to come out: when each was due, and how late it was."""

    def __init__(self):
        self.lock = threading.Lock()
        self.due, self.late = {}, []
        self.last_late = self.count = 0
        self.refused = None

    def put(self, identity, due):
        with self.lock:
            self.due[identity] = due

    def came(self, identity):
        now = time.monotonic()
        with self.lock:
            due = self.due.pop(identity, None)
            if due is None:
                return
            self.count += 1
            self.late.append(now - due)
            if now - due > LATE_SECONDS:
                self.last_late = now

    def is_at_peace(self):
        now = time.monotonic()
        with self.lock:
            waits = any(now - due > LATE_SECONDS for due in self.due.values())
            return not waits and now - self.last_late > PEACE_SECONDS

    def last_came_late(self, since):
        """Seconds from `since` until the last late record came; 0 where none was late."""
        with self.lock:
            return max(0.0, self.last_late - since)


def ticks(rate, stopping):
    """One instant after the other, at a steady rate; what could not be served in time stays due at its instant."""
    due = time.monotonic()
    while not stopping.is_set():
        due += 1 / rate
        if (ahead := due - time.monotonic()) > 0:
            stopping.wait(ahead)
        yield due


class Pipeline:
    """Failed payments through a gateway, and what becomes of them in each topic on their way."""

    def __init__(self, place, rate, dice, stopping):
        self.place, self.stopping = place, stopping
        self.flows = {name: Flow() for name in WAY}
        self.flow = self.flows[WAY[-1]]
        self.identity = uuid.UUID(int=dice.getrandbits(128))
        self.threads = [threading.Thread(target=self._post, args=(number, rate / THREADS)) for number in range(THREADS)]
        self.threads += [threading.Thread(target=self._read, args=way) for way in self.flows.items()]

    def _post(self, number, rate):
        connection, count = None, 0
        for due in ticks(rate, self.stopping):
            count += 1
            attempt = f"{self.identity}-{number}-{count}"
            event = {
                "type": "payment.failed", "environment": "Production", "account": str(uuid.uuid5(self.identity, attempt)),
                "attemptId": attempt, "occurredAt": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
                "productId": "com.example.harbour.coins.100", "failure": {"domain": "SKErrorDomain", "code": 2, "userCancelled": True},
            }
            for flow in self.flows.values():
                flow.put(event["account"], due)
            while not self.stopping.is_set():
                try:
                    if connection is None:
                        host, port = self.place.gateways[number % len(self.place.gateways)]
                        connection = http.client.HTTPConnection(host, port, timeout=ANSWER_SECONDS)
                    connection.request("POST", "/v1/events", json.dumps(event), {"content-type": "application/json"})
                    answer = connection.getresponse()
                    said = answer.read()
                except (OSError, http.client.HTTPException):
                    connection = None
                    continue
                if answer.status < 300:
                    break
                if answer.status < 500:
                    self.flow.refused = f"the gateway refuses a failed payment: {answer.status} {said[:300]}"
                    return

    def _read(self, topic, flow):
        for message in records(self.place, f"purchases.{topic}", self.stopping):
            if found := ACCOUNT.search(message.value()):
                flow.came(found[1].decode())

    def way(self, since):
        """Until when records came late in each topic: the first one with a long time tells who was slow."""
        return ", ".join(f"{name} {flow.last_came_late(since):.1f}" for name, flow in self.flows.items())


class Plain:
    """The least that a transactional client of Kafka does: one member copies from topic to topic, batch by batch."""

    def __init__(self, place, rate, stopping):
        from confluent_kafka.admin import AdminClient, NewTopic

        self.place, self.rate, self.flow, self.stopping = place, rate, Flow(), stopping
        admin = AdminClient({**QUIET, "bootstrap.servers": servers(place)})
        topics = [NewTopic(name, 4, 3, config={"min.insync.replicas": "2"}) for name in ("plain.in", "plain.out")]
        for future in admin.create_topics(topics).values():
            future.result(60)
        self.threads = [threading.Thread(target=body) for body in (self._write, self._copy, self._read)]

    def _write(self):
        from confluent_kafka import Producer

        producer = Producer({**QUIET, "bootstrap.servers": servers(self.place), "enable.idempotence": True})
        for count, due in enumerate(ticks(self.rate, self.stopping)):
            self.flow.put(str(count), due)
            producer.produce("plain.in", str(count).encode(), str(count).encode())
            producer.poll(0)
        producer.flush(10)

    def _copy(self):
        from confluent_kafka import KafkaException

        while not self.stopping.is_set():
            try:
                self._copy_in_one_session()
            except KafkaException as error:
                say(f"the plain client begins anew: {error.args[0].name()}")

    def _copy_in_one_session(self):
        from confluent_kafka import Consumer, KafkaException, Producer

        # After it polls go on empty, and what a callback raises does not always reach who polls.
        ends = []

        def tell(error):
            if error.fatal():
                ends.append(error)

        consumer = Consumer(
            {
                **QUIET, "bootstrap.servers": servers(self.place), "group.id": "plain", "group.instance.id": "plain", "enable.auto.commit": False,
                "error_cb": tell,
                "auto.offset.reset": "earliest", "session.timeout.ms": SESSION_MS, "isolation.level": "read_committed",
            }
        )
        try:
            consumer.subscribe(["plain.in"])
            producer = Producer(
                {**QUIET, "bootstrap.servers": servers(self.place), "transactional.id": "plain", "transaction.timeout.ms": SESSION_MS}
            )
            producer.init_transactions(60)
            while not self.stopping.is_set():
                messages = [message for message in consumer.consume(1000, 0.02) if message.error() is None]
                if ends:
                    raise KafkaException(ends[0])
                if not messages:
                    continue
                producer.begin_transaction()
                for message in messages:
                    producer.produce("plain.out", message.value(), message.key())
                producer.flush(TRANSACTION_SECONDS)
                positions = consumer.position(consumer.assignment())
                # Without a limit, librdkafka may wait for ever.
                producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), TRANSACTION_SECONDS)
                producer.commit_transaction(TRANSACTION_SECONDS)
        finally:
            # librdkafka may wait without end for a group that fenced it.
            closing = threading.Thread(target=consumer.close, daemon=True)
            closing.start()
            closing.join(TRANSACTION_SECONDS)

    def _read(self):
        for message in records(self.place, "plain.out", self.stopping):
            self.flow.came(message.value().decode())


def servers(place):
    return place.log.removeprefix("kafka://")


def records(place, topic, stopping):
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {**QUIET, "bootstrap.servers": servers(place), "group.id": "failover-reader", "enable.auto.commit": False, "isolation.level": "read_committed"}
    )
    try:
        # A topic that was made just now shows without its partitions at first.
        while not (partitions := consumer.list_topics(topic, 60).topics[topic].partitions) and not stopping.is_set():
            time.sleep(0.1)
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        while not stopping.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                yield message
    finally:
        consumer.close()


class Machine:
    """Whether the machine itself stands still: a round in which it does tells nothing of the pipeline."""

    TICK_SECONDS = 0.05

    def __init__(self, stopping):
        self.longest, self.stopping = 0.0, stopping
        self.threads = [threading.Thread(target=self._watch)]

    def _watch(self):
        before = time.monotonic()
        while not self.stopping.is_set():
            time.sleep(self.TICK_SECONDS)
            now = time.monotonic()
            self.longest, before = max(self.longest, now - before - self.TICK_SECONDS), now

    def take_longest(self):
        longest, self.longest = self.longest, 0.0
        return longest


class Kinds:
    """What is thrown, one kind a method; each answers the instant at which it struck."""

    def __init__(self, place, dice):
        self.place, self.dice = place, dice
        self.faults = Faults(place, dice)

    def k_broker_killed(self):
        """The one that coordinates the transactions of a member, and leads a third of all partitions."""
        identity = f"purchases.entitlements.{self.dice.choice(self.place.members('entitlements')).name}"
        leader, _ = self.faults.leader("__transaction_state", lambda count: java_hash(identity) % count)
        began = time.monotonic()
        self.place.script("kafka", "kill9", self.place.kafka, leader)
        return began, lambda: self.faults.resume(leader)

    def k_member_stops(self):
        """A planned stop of one of a stage's members, unnamed as in a deployment that scales."""
        name = self._unnamed()
        began = time.monotonic()
        if (status := self.place.processes.pop(name).stop()) != 0:
            raise RuntimeError(f"{name} ended with {status}")
        return began, lambda: None

    def k_member_killed(self):
        """One that does not come back."""
        name = self._unnamed()
        began = time.monotonic()
        process = self.place.processes.pop(name)
        process.is_wanted = False
        process.kill()
        return began, lambda: None

    def k_member_restarted(self):
        """A named one that its supervisor starts again at once."""
        process = self.dice.choice(self.place.members())
        began = time.monotonic()
        process.kill()
        return began, lambda: None

    def _unnamed(self):
        """A further member, once it has a share of the work."""
        stage = self.dice.choice(STAGES[:3])
        self.place.extras += 1
        name = f"{stage}-x{self.place.extras}"
        self.place.add_stage(stage, name)
        end = time.monotonic() + FAULT_SECONDS
        while b'"assigned"' not in self.place.processes[name].log.read_bytes():
            if time.monotonic() > end:
                raise RuntimeError(f"{name} has got no partition")
            time.sleep(0.05)
        return name


def await_peace(flows):
    end = time.monotonic() + FAULT_SECONDS
    while not all(flow.count and flow.is_at_peace() for flow in flows):
        for flow in flows:
            if flow.refused:
                raise RuntimeError(flow.refused)
        if time.monotonic() > end:
            raise RuntimeError(f"not at peace after {FAULT_SECONDS} s: {[len(flow.due) for flow in flows]} are awaited")
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--store", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=float, default=20, help="records a second, of the pipeline and of the plain client")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", type=lambda text: text.split(","))
    options = parser.parse_args()
    options.program, options.log, options.debug_program, options.minutes, options.only = str(options.program.resolve()), "kafka", None, 10, None
    # Nothing between the processes: what is measured is theirs.
    options.has_relays = False
    folder = pathlib.Path(tempfile.mkdtemp(prefix="purchases-failover."))
    folder.chmod(0o755)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    dice, stopping, place, threads = random.Random(options.seed), threading.Event(), None, []
    try:
        demo = ["demo", "--accounts", "20", "--log", f"sqlite:{folder}/log.db", "--store", f"sqlite:{folder}/store.db", "--keep", folder / "kept"]
        subprocess.run([options.program, *map(str, demo)], check=True, stdout=subprocess.DEVNULL)
        place = Place(options, folder, folder / "kept")
        place.start()
        place.await_work()
        pipeline, plain = Pipeline(place, options.rate, dice, stopping), Plain(place, options.rate, stopping)
        machine, flows = Machine(stopping), [pipeline.flow, plain.flow]
        threads = machine.threads + pipeline.threads + plain.threads
        for thread in threads:
            thread.start()
        measure(options, Kinds(place, dice), pipeline, flows, machine)
    finally:
        # What is being put away is put away, however often one is told to end.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stopping.set()
        for thread in threads:
            thread.join()
        if place is not None:
            try:
                place.halt()
            finally:
                place.end()
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def measure(options, kinds, pipeline, flows, machine):
    await_peace(flows)
    time.sleep(PEACE_SECONDS)
    for name, flow in zip(("pipeline", "plain client"), flows):
        with flow.lock:
            late = sorted(flow.late[-int(PEACE_SECONDS * options.rate) :])
        say(f"{name}: {flow.count} records, in peace p50 {late[len(late) // 2] * 1000:.0f} ms, p99 {late[len(late) * 99 // 100] * 1000:.0f} ms")
    names = options.kinds or [name.removeprefix("k_") for name in dir(kinds) if name.startswith("k_")]
    for name in names:
        rows, again = [], options.rounds
        while len(rows) < options.rounds:
            await_peace(flows)
            machine.take_longest()
            began, undo = getattr(kinds, "k_" + name)()
            # What is stuck from the first instant on is late only now.
            time.sleep(2 * LATE_SECONDS)
            await_peace(flows)
            ours, theirs = (flow.last_came_late(began) for flow in flows)
            stood = machine.take_longest()
            say(f"{name}: pipeline {ours:.1f} s ({pipeline.way(began)}), plain client {theirs:.1f} s; the machine stood still for {stood:.1f} s at most")
            undo()
            if stood > LATE_SECONDS and again:
                again -= 1
                continue
            rows.append((ours, theirs, ours - theirs))
        columns = ["/".join(f"{figure:.1f}" for figure in (statistics.median(c), min(c), max(c))) for c in zip(*rows)]
        say(f"| {name} | {columns[0]} | {columns[1]} | {columns[2]} |")


if __name__ == "__main__":
    sys.exit(main())
