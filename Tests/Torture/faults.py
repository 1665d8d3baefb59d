"""What is thrown at a deployment. Each method `f_…` throws one kind of fault and takes it back; the dice are the seed's."""

import collections
import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess
import time

from place import BROKERS, STAGES, WITH_STATE
from processes import STOP_SECONDS

# Past the transaction and the session (6 s each) of whoever stands still.
STILL = (8, 14)
# A stage that was started, or lost its place, is at work again within this where nothing else fails.
AT_WORK_SECONDS = 30
# A successor that was fenced hears of it at its next transaction.
FENCE_SECONDS = 10
# A stage that finds log and store at odds says so and ends within this.
REFUSAL_SECONDS = 60
# How long the work goes on past a backup that is then restored.
BACKUP_SECONDS = (2, 6)
# A coordinator that has just moved takes a while to answer, and a group is empty only when its sessions are over.
COORDINATOR_SECONDS = 60
# These stop the whole deployment for some ten seconds each: thrown less often, so that the rest meets work.
HEAVY = ("store_older", "store_deleted", "store_offsets_gone")
HEAVY_SHARE = 0.3


def java_hash(text):
    """As `String.hashCode`, made positive as the brokers do to choose a coordinator's partition."""
    value = 0
    for letter in text:
        value = (31 * value + ord(letter)) & 0xFFFF_FFFF
    value = value - (1 << 32) if value >> 31 else value
    return 0 if value == -(1 << 31) else abs(value)


def is_end_of_transaction(is_request, data):
    """A request of Kafka's protocol begins with its length and its number; 26 is EndTxn."""
    return is_request and data[4:6] == b"\0\x1a"


def is_commit(is_request, data):
    """PostgreSQL's answer to a COMMIT that took effect: the command's own name, and an end."""
    return not is_request and b"COMMIT\0" in data


class Faults:
    def __init__(self, place, dice):
        self.place, self.dice = place, dice
        # Those that struck, and those that found nothing to strike.
        self.thrown, self.missed = collections.Counter(), collections.Counter()
        self.poison = set()
        names = [name.removeprefix("f_") for name in dir(self) if name.startswith("f_")]
        log, store = place.options.log, place.options.store
        kinds = {
            "crash": place.options.debug_program is not None, "kafka": log == "kafka", "postgres": store == "postgres",
            "sqlite": "sqlite" in (log, store),
        }
        self.kinds = [name for name in names if kinds.get(name.split("_")[0], True)]
        if place.options.only:
            self.kinds = [name for name in self.kinds if name in place.options.only]

    def throw(self):
        weights = [HEAVY_SHARE if name in HEAVY else 1 for name in self.kinds]
        return self.throw_one(self.dice.choices(self.kinds, weights)[0])

    def throw_one(self, name):
        said = getattr(self, "f_" + name)()
        if said is None:
            self.missed[name] += 1
            return f"fault {name}: met nothing"
        self.thrown[name] += 1
        return f"fault {name}: {said}"

    def _pause(self, low, high):
        time.sleep(self.dice.uniform(low, high))

    # Processes.

    def f_process_kill_stage(self):
        victim = self.dice.choice(self.place.members())
        victim.kill()
        return victim.name

    def f_process_kill_all_of_a_stage(self):
        stage = self.dice.choice(STAGES)
        for victim in self.place.members(stage):
            victim.kill()
        return stage

    def f_process_kill_gateway(self):
        victim = self.dice.choice(self.place.gateway_processes())
        victim.kill()
        return victim.name

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
        statuses = self.dice.choice(self.place.members(stage)).crash(program, points)
        if any(status not in (-signal.SIGKILL, None) for status in statuses):
            raise RuntimeError(f"{stage} was to crash at {points} and ended with {statuses}")
        if None in statuses:
            return None
        return f"{stage} at {' and '.join(points)}, ended with {statuses}"

    def f_process_zombie(self):
        """Stands still past its transaction and its session, and goes on as if nothing had been."""
        victim = self.dice.choice(self.place.members())
        victim.still()
        self._pause(*STILL)
        victim.go_on()
        return victim.name

    def f_process_zombie_with_successor(self):
        """The successor under the same name has its share when the old one goes on: the hardest instant. Or it has worked for
        a while, and the old one is past its transaction and its session."""
        process = self.dice.choice(self.place.members())
        end = time.monotonic() + AT_WORK_SECONDS
        while b'"assigned"' not in process.log.read_bytes():
            # One that has not yet taken its name would take it from its successor, rightly.
            if time.monotonic() > end:
                return None
            time.sleep(0.05)
        ends = process.ends.copy()
        old = process.succeed()
        end = time.monotonic() + STILL[1]
        while time.monotonic() < end and b'"assigned"' not in process.log.read_bytes():
            time.sleep(0.01)
        is_long = self.dice.random() < 0.5
        try:
            if is_long:
                self._pause(*STILL)
            old.send_signal(signal.SIGCONT)
            status = old.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"the zombie of {process.name} neither stopped nor was fenced in {STOP_SECONDS} s") from None
        finally:
            # Nobody else knows of it.
            old.kill()
            old.wait()
        if status != 1:
            raise RuntimeError(f"the zombie of {process.name} ended with {status}, not as one that is fenced")
        # One that stood still for a moment only may take its name back, as a late start of it would; then it is the next
        # start, and not the first, that ends it.
        fought = process.forget_fenced(ends)
        process.forgive_fenced(FENCE_SECONDS)
        return f"{process.name}, the zombie ended with {status}{' after long' if is_long else ''}{f', {fought} successors before' if fought else ''}"

    def f_process_come_and_go(self):
        """Members are added and stopped every two seconds: partitions move while their batches are in hand, and the old
        owner stays a member."""
        stage, rounds = self.dice.choice(STAGES), self.dice.randint(2, 4)
        for _ in range(rounds):
            self.place.extras += 1
            name = f"{stage}-x{self.place.extras}"
            self.place.add_stage(stage, name)
            time.sleep(2)
            with self.place.lock:
                extra = self.place.processes.pop(name)
            status = extra.stop()
            self.place.extra_ends.update({f"{name} {status}": count for status, count in extra.ends.items()})
            if status != 0:
                raise RuntimeError(f"{name} ended with {status} after SIGTERM: {extra.last_words()}")
        return f"{stage} {rounds} times"

    # Brokers, and the network to them.

    def resume(self, *numbers):
        self.place.script("kafka", "resume", self.place.kafka, *numbers)

    def _kill_broker(self, number):
        self.place.script("kafka", "kill9", self.place.kafka, number)
        # Longer than the controller waits for a broker, so that all it led has moved.
        self._pause(2, 9)
        self.resume(number)
        return f"broker {number}"

    def f_kafka_kill_broker(self):
        return self._kill_broker(self.dice.randint(1, BROKERS))

    def _servers(self):
        return self.place.log.removeprefix("kafka://")

    def leader(self, topic, choose):
        """The broker that leads the partition that `choose` picks of so many."""
        from confluent_kafka.admin import AdminClient

        partitions = AdminClient({"bootstrap.servers": self._servers()}).list_topics(topic, COORDINATOR_SECONDS).topics[topic].partitions
        number = choose(len(partitions))
        leader = partitions[number].leader
        if leader < 1:
            return None, number
        return leader, number

    def _kill_leader(self, topic, choose):
        leader, partition = self.leader(topic, choose)
        if leader is None:
            return None
        return f"{topic}/{partition}, {self._kill_broker(leader)}"

    def _told(self, of, said):
        return None if said is None else f"of {of}: {said}"

    def f_kafka_kill_leader(self):
        topic = self.dice.choice(["received", "verified", "owned", "entitlements"])
        return self._kill_leader(f"purchases.{topic}", self.dice.randrange)

    def f_kafka_kill_transaction_coordinator(self):
        process = self.dice.choice(self.place.members())
        identity = f"purchases.{process.name.split('-')[0]}.{process.name}"
        return self._told(process.name, self._kill_leader("__transaction_state", lambda count: java_hash(identity) % count))

    def f_kafka_kill_group_coordinator(self):
        group = f"purchases.{self.dice.choice(STAGES)}"
        return self._told(group, self._kill_leader("__consumer_offsets", lambda count: java_hash(group) % count))

    def f_kafka_lose_quorum(self):
        numbers = self.dice.sample(range(1, BROKERS + 1), 2)
        for number in numbers:
            self.place.script("kafka", "kill9", self.place.kafka, number)
        self._pause(1, 4)
        self.resume(*numbers)
        return f"brokers {numbers}"

    def f_kafka_still_broker(self):
        number = self.dice.randint(1, BROKERS)
        process = int((self.place.kafka / f"pid{number}").read_text())
        os.kill(process, signal.SIGSTOP)
        self._pause(1, 10)
        os.kill(process, signal.SIGCONT)
        return f"broker {number}"

    def _end_connections(self, relays):
        for relay in relays:
            relay.end_some(self.dice, 0.5)
        return "half of them"

    def _hold_connections(self, relays):
        held = [(relay, relay.hold_some(self.dice, 0.3)) for relay in relays]
        self._pause(2, 12)
        for relay, connections in held:
            relay.release(connections)
        count = sum(len(connections) for _, connections in held)
        return f"{count} connections" if count else None

    def _slow(self, relays):
        delay = self.dice.uniform(0.005, 0.1)
        for relay in relays:
            relay.delay = delay
        self._pause(2, 5)
        for relay in relays:
            relay.heal()
        return f"{delay * 1000:.0f} ms"

    def _cut(self, relay):
        relay.cut()
        self._pause(1, 8)
        relay.heal()

    def _lose_answers(self, relays, marks):
        before = sum(relay.lost for relay in relays)
        for relay in relays:
            relay.lose_answers(marks)
        self._pause(0.5, 2)
        for relay in relays:
            relay.heal()
        count = sum(relay.lost for relay in relays) - before
        return f"{count} answers" if count else None

    def f_kafka_connections_end(self):
        return self._end_connections(self.place.relays)

    def f_kafka_connections_half_open(self):
        return self._hold_connections(self.place.relays)

    def f_kafka_network_slow(self):
        return self._slow(self.place.relays)

    def f_kafka_network_cut(self):
        self._cut(self.dice.choice(self.place.relays))
        return "one broker"

    def f_kafka_commit_answers_lost(self):
        """The end of a transaction reaches its coordinator, and the answer never comes."""
        return self._lose_answers(self.place.relays, is_end_of_transaction)

    # Poison.

    def f_poison(self):
        """What no event is, from a producer that is not ours."""
        head = {"ce_specversion": "1.0", "ce_id": f"poison-{self.dice.random()}", "ce_source": "/torture"}
        head |= {"content-type": "application/json"}
        kinds = [
            (self.dice.randbytes(200), {}),
            (b'{"type":"payment.failed"', {**head, "ce_type": "payment.failed.v1"}),
            (b"{}", {**head, "ce_type": "payment.unheard-of.v1"}),
            (b"{}", {**head, "ce_type": "payment.purchased.v99"}),
            (b"{}", {**head, "ce_specversion": "7", "ce_type": "payment.purchased.v1"}),
            (b"\0" * (900 << 10), {}),
            (b" " * (5 << 20), {**head, "ce_type": "payment.purchased.v1"}),
            (None, {**head, "ce_type": "payment.failed.v1"}),
            (None, {}),
            (b'{"a":1}', {**head, "ce_type": "payment.purchased.v1"}),
        ]
        kinds = self.dice.sample(kinds, self.dice.randint(3, len(kinds)))
        keys = [self.dice.choice([None, b"", b"Production/1", self.dice.randbytes(8)]) for _ in kinds]
        put = self._put_into_kafka if self.place.options.log == "kafka" else self._put_into_file
        self.poison |= put([(key, list(headers.items()), value) for key, (value, headers) in zip(keys, kinds)])
        return f"{len(kinds)} records"

    def _put_into_kafka(self, records):
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._servers(), "acks": "all", "message.max.bytes": 8 << 20})
        told = []
        for key, headers, value in records:
            producer.produce(
                "purchases.received", key=key, value=value, headers=headers,
                on_delivery=lambda error, message: told.append((error, message.partition(), message.offset())),
            )
        if producer.flush(120) or any(error for error, _, _ in told):
            raise RuntimeError(f"poison was not taken: {told}")
        return {(partition, offset) for _, partition, offset in told}

    def _put_into_file(self, records):
        """As somebody who can write the file, and leaves its format whole."""
        def sized(value):
            return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value

        places = set()
        with self._file(self.place.log) as connection, self._transaction(connection):
            query = "SELECT p.id, p.number FROM partition p JOIN topic t ON t.id = p.topic_id WHERE t.name = 'purchases.received' ORDER BY p.number"
            partitions = connection.execute(query).fetchall()
            for key, headers, value in records:
                identity, number = self.dice.choice(partitions)
                (offset,) = connection.execute(f'SELECT coalesce(max("offset") + 1, 0) FROM record_{identity}').fetchone()
                blob = b"".join(sized(name.encode()) + sized(text.encode()) for name, text in headers)
                now = int(time.time() * 1000)
                connection.execute(f"INSERT INTO record_{identity} VALUES (?,?,?,?,?)", (offset, now, key, blob, value))
                connection.execute(
                    "INSERT INTO timestamp_block VALUES (?,?,?) ON CONFLICT DO UPDATE SET latest = max(latest, excluded.latest)",
                    (identity, offset // 1024, now),
                )
                places.add((number, offset))
        return places

    # Databases.

    def f_postgres_restart_immediate(self):
        self.place.script("postgres", "restart", self.place.postgres, "immediate")
        return "the crash"

    def f_postgres_connections_end(self):
        query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        for _ in range(self.dice.randint(1, 5)):
            self.place.sql(query)
            self._pause(0, 0.3)
        return "all of them"

    def f_postgres_still(self):
        """The whole server stands still, and every connection to it stays open."""
        query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        found = [int(line) for line in self.place.sql(query)]
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        self._pause(1, 12)
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
        return f"{len(found)} of its processes"

    def f_postgres_network_cut(self):
        self._cut(self.place.database_relay)
        return "all of it"

    def f_postgres_network_slow(self):
        return self._slow([self.place.database_relay])

    def f_postgres_connections_half_open(self):
        return self._hold_connections([self.place.database_relay])

    def f_postgres_commit_answers_lost(self):
        """COMMIT reaches the server, and its answer never comes."""
        return self._lose_answers([self.place.database_relay], is_commit)

    # Files.

    @contextlib.contextmanager
    def _file(self, url):
        connection = sqlite3.connect(url.removeprefix("sqlite:"), timeout=30, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    @contextlib.contextmanager
    def _transaction(self, connection):
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")

    def _files(self):
        return [url for url in (self.place.log, self.place.direct_store) if url.startswith("sqlite:")]

    def f_sqlite_busy(self):
        """Somebody else holds the file: a backup, a curious person with a shell."""
        url = self.dice.choice(self._files())
        with self._file(url) as connection, self._transaction(connection):
            self._pause(1, 9)
        return pathlib.Path(url).name

    def f_sqlite_disk_full(self):
        if not self.place.is_mounted:
            self.place.strike_disk("F")
            self._pause(0.5, 5)
            self.place.heal_disk()
            return "by the library before the disk"
        ballast = self.place.disk / "ballast"
        file = os.open(ballast, os.O_CREAT | os.O_WRONLY)
        try:
            space = os.statvfs(self.place.disk)
            left = space.f_bavail * space.f_frsize
            # Others write meanwhile: what is then still free goes page by page.
            with contextlib.suppress(OSError):
                os.posix_fallocate(file, 0, left)
            with contextlib.suppress(OSError):
                place = os.lseek(file, 0, os.SEEK_END)
                while True:
                    place += os.pwrite(file, b"\0" * 4096, place)
            self._pause(0.5, 5)
        finally:
            os.close(file)
            ballast.unlink()
        return f"{left >> 20} MiB of ballast"

    def f_sqlite_sync_fails(self):
        share = self.dice.choice([40, 255])
        self.place.strike_disk("S", share)
        self._pause(0.5, 4)
        self.place.heal_disk()
        return f"{share * 100 // 255} % of them"

    def f_sqlite_write_fails(self):
        share = self.dice.choice([10, 255])
        self.place.strike_disk("W", share)
        self._pause(0.5, 4)
        self.place.heal_disk()
        return f"{share * 100 // 255} % of them"

    # The store behind the log: the stages must stop and say what to do, and go on when it is put right.

    def _stop_at(self, expected, damage, repair, words):
        """`expected`: the stages that must stop, with `words` on their log; everything else stays halted meanwhile."""
        wrong = self.place.halt()
        damage()
        try:
            started = []
            for stage in expected:
                for process in self.place.members(stage):
                    process.start_unwatched()
                    started.append(process)
            for process in started:
                status = process.end_of_one_start(REFUSAL_SECONDS)
                said = process.log.read_text(errors="replace")
                if status in (None, 0) or words not in said:
                    wrong.append(f"{process.name} ended with {status} and did not say '{words}': {said[-600:]}")
        finally:
            repair()
            self.place.begin()
        if wrong:
            raise RuntimeError("; ".join(wrong))
        return f"{', '.join(expected)} stopped and said what to do"

    def _positions(self, database=None):
        """The sum of each stage's positions."""
        query = "SELECT stage, sum(next) FROM stage_position GROUP BY stage"
        if self.place.options.store == "postgres":
            return {stage: int(text) for stage, text in (line.split("|") for line in self.place.sql(query, database or "purchases") if line[-1] != "|")}
        path = self.place.direct_store.removeprefix("sqlite:") if database is None else str(database)
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return {stage: total for stage, total in connection.execute(query) if total is not None}
        finally:
            connection.close()

    def f_store_older(self):
        older, newest = ("older", "newest")
        if self.place.options.store == "postgres":
            wrong = self.place.halt()
            if wrong:
                raise RuntimeError("; ".join(wrong))
            for name in (older, newest):
                self.place.sql(f"DROP DATABASE IF EXISTS {name}", "postgres")
            self.place.sql(f"CREATE DATABASE {older} TEMPLATE purchases", "postgres")
            self.place.begin()
        else:
            older = self.place.disk / "older.db"
            older.unlink(missing_ok=True)
            with self._file(self.place.direct_store) as source, self._file(f"sqlite:{older}") as target:
                source.backup(target)
        then = self._positions(older)
        self._pause(*BACKUP_SECONDS)
        now = self._positions()
        behind = [stage for stage in WITH_STATE if now.get(stage, 0) > then.get(stage, 0)]
        damage, repair = self._exchange(older)
        return self._stop_at(behind, damage, repair, "The store is older than the log's offsets") if behind else None

    def f_store_deleted(self):
        damage, repair = self._exchange(None)
        behind = [stage for stage in WITH_STATE if self._positions().get(stage)]
        return self._stop_at(behind, damage, repair, "The store is older than the log's offsets") if behind else None

    def _exchange(self, other):
        """How the store is put aside for another one (None: for nothing), and back."""
        if self.place.options.store == "postgres":
            def damage():
                self.place.sql("ALTER DATABASE purchases RENAME TO newest", "postgres")
                self.place.sql(f"ALTER DATABASE {other} RENAME TO purchases" if other else "CREATE DATABASE purchases", "postgres")

            def repair():
                self.place.sql("DROP DATABASE purchases WITH (FORCE)", "postgres")
                self.place.sql("ALTER DATABASE newest RENAME TO purchases", "postgres")
        else:
            path = self.place.direct_store.removeprefix("sqlite:")
            ends = ("", "-wal", "-shm")

            def move(source, target):
                for end in ends:
                    pathlib.Path(target + end).unlink(missing_ok=True)
                    if pathlib.Path(source + end).exists():
                        shutil.move(source + end, target + end)

            def damage():
                move(path, path + ".newest")
                if other:
                    move(str(other), path)

            def repair():
                move(path + ".newest", path)

        return damage, repair

    def f_store_offsets_gone(self):
        stage = self.dice.choice(STAGES)
        # What the stage after verification has worked off, verification has put out.
        if not self._positions().get("ownership" if stage == "verification" else stage):
            return None
        ends = self._kafka_offsets(stage) if self.place.options.log == "kafka" else self._file_offsets(stage)
        words = "offsets are gone or were set back" if stage in WITH_STATE else "The group's offsets are gone, or it is a new group"
        return self._stop_at([stage], *ends, words)

    def _file_offsets(self, stage):
        kept = []

        def damage():
            with self._file(self.place.log) as connection, self._transaction(connection):
                query = "FROM committed_offset WHERE group_id = (SELECT id FROM consumer_group WHERE name = ?)"
                kept.extend(connection.execute(f"SELECT group_id, partition_id, next {query}", (f"purchases.{stage}",)))
                # The file itself refuses that an offset is forgotten.
                (trigger,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'offset_kept'").fetchone()
                connection.execute("DROP TRIGGER offset_kept")
                connection.execute(f"DELETE {query}", (f"purchases.{stage}",))
                connection.execute(trigger)

        def repair():
            with self._file(self.place.log) as connection, self._transaction(connection):
                for row in kept:
                    connection.execute("INSERT OR IGNORE INTO committed_offset VALUES (?,?,?)", row)

        return damage, repair

    def _kafka_offsets(self, stage):
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
        from confluent_kafka.admin import AdminClient

        admin, group = AdminClient({"bootstrap.servers": self._servers()}), f"purchases.{stage}"
        kept = []

        def persist(ask):
            end = time.monotonic() + COORDINATOR_SECONDS
            while True:
                try:
                    answer = ask().result(COORDINATOR_SECONDS)
                    for partition in getattr(answer, "topic_partitions", ()):
                        if partition.error is not None:
                            raise KafkaException(partition.error)
                    return answer
                except KafkaException:
                    # The group has members until the sessions of those that were stopped are over.
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.5)

        def damage():
            request = [ConsumerGroupTopicPartitions(group)]
            # A transaction of the stage that has just stopped may still be ending: its offsets count.
            found = persist(lambda: admin.list_consumer_group_offsets(request, require_stable=True)[group]).topic_partitions
            kept.extend(partition for partition in found if partition.offset >= 0)
            persist(lambda: admin.delete_consumer_groups([group])[group])

        def repair():
            request = [ConsumerGroupTopicPartitions(group, kept)]
            persist(lambda: admin.alter_consumer_group_offsets(request)[group])

        return damage, repair
