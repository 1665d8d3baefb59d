"""Judges what a run of the pipeline has left behind. It knows the event contract and the document about the audit log, and
nothing of the program: every sum is done again here.

    python checker.py --log URL --store URL [--prefix TEXT] [--group NAME] [--accepted FILE] [--poison FILE] [--idle]

Prints each fault and how many there are of its kind. Exit status 0 none, 1 some.
"""

import argparse
import base64
import collections
import hashlib
import json
import pathlib
import struct
import sys

import evidence as reading

# The stage that owns a topic's processing, and where its outputs go.
OUTPUTS = {
    "verification": (("received", "parked"), ("verified", "parked", "quarantine")),
    "ownership": (("verified",), ("owned", "quarantine")),
    "entitlements": (("owned",), ("entitlements", "entitlement-state", "received", "owned", "quarantine")),
}
# Trees exist for these; `entitlement-state` is compacted, `audit` holds the checkpoints.
AUDITED = ["received", "verified", "owned", "entitlements", "parked", "quarantine", "catalogue"]
TERMINAL = {"purchase.verified.v1": "verified", "purchase.rejected.v1": "rejected"}


class Faults:
    """What was found, by kind; a kind's first few are told in full."""

    TOLD = 5

    def __init__(self):
        self.kinds = collections.defaultdict(list)

    def add(self, kind, text):
        self.kinds[kind].append(text)

    def lines(self):
        for kind, texts in sorted(self.kinds.items()):
            yield f"{kind}: {len(texts)}"
            yield from (f"  {text}" for text in texts[: self.TOLD])


def check(evidence, idle=True, prefix="purchases."):
    """All checks; `idle`: nothing is under way any more, so that every record must have been worked off."""
    faults = Faults()
    outputs = _outputs(evidence, faults, prefix)
    if idle:
        _everything_was_worked_off(evidence, outputs, faults)
    _accepted_is_received(evidence, faults)
    _one_verdict_per_proof(evidence, faults)
    _ids_take_effect_once(evidence, faults)
    _transactions_take_effect_once(evidence, faults)
    _versions(evidence, faults)
    _state_is_the_fold(evidence, faults)
    _newest_state(evidence, faults)
    _poison(evidence, faults)
    _forged(evidence, faults)
    _trees(evidence, faults, idle, prefix)
    return faults


def _origin(record, prefix):
    """(stage, topic, partition, offset, index, count) of the record that an output comes from; None for none."""
    if record.topic == "quarantine":
        name, stage = "purchases-quarantine-", record.header("purchases-quarantine-stage")
        places, counts = ("topic", "partition", "offset"), ("index", "count")
    elif record.header("ce_origintopic") is not None:
        name, places, counts = "ce_", ("origintopic", "originpartition", "originoffset"), ("outputindex", "outputcount")
        stage = "verification" if record.topic == "parked" else record.header("ce_source").rsplit("/", 1)[1]
    else:
        return None
    topic, partition, offset = (record.header(name + place) for place in places)
    index, count = (int(record.header(name + count)) for count in counts)
    return stage, topic.removeprefix(prefix), int(partition), int(offset), index, count


def source(record, prefix="purchases."):
    """The place of the record that it was made from, where it names one."""
    found = _origin(record, prefix)
    return found and f"{found[1]}/{found[2]}/{found[3]}"


def _outputs(evidence, faults, prefix):
    """Each input's outputs: whole, each there once, and from a record that is there."""
    stored = {record.place for records in evidence.topics.values() for record in records}
    outputs = collections.defaultdict(lambda: collections.defaultdict(list))
    for topic, records in evidence.topics.items():
        for record in records:
            found = _origin(record, prefix)
            if found is None:
                if topic in ("verified", "entitlements", "parked"):
                    faults.add("invented", f"{record.place} names no source")
                continue
            stage, source, partition, offset, index, count = found
            origin = f"{source}/{partition}/{offset}"
            if origin not in stored:
                faults.add("invented", f"{record.place} comes from {origin}, which is not there")
            # Copies of one output for two kinds of readers (a change and its state) share an index.
            outputs[stage, origin][index, count].append(record)
    for (stage, origin), parts in outputs.items():
        counts = {count for _, count in parts}
        if len(counts) > 1:
            faults.add("doubled", f"{stage} decided {origin} more than once: {sorted(counts)} outputs")
            continue
        for number in range(counts.pop()):
            copies = parts.get((number, next(iter(parts))[1]), [])
            if not copies:
                faults.add("lost", f"{stage}: output {number} of {origin} is missing")
            for topic, times in collections.Counter(copy.topic for copy in copies).items():
                if times > 1:
                    faults.add("doubled", f"{stage}: output {number} of {origin} is {times} times in {topic}")
    return outputs


def _everything_was_worked_off(evidence, outputs, faults):
    for stage, topics in reading.STAGES.items():
        for topic in topics:
            last = collections.defaultdict(lambda: -1)
            for record in evidence.topics.get(topic, []):
                last[record.partition] = record.offset
            for partition, offset in last.items():
                done = evidence.offsets.get((stage, topic, partition), 0)
                if done <= offset:
                    faults.add("lag", f"{stage}: {topic}/{partition} is worked off to {done} of {offset + 1}")
    for record in evidence.topics.get("received", []) + evidence.topics.get("parked", []):
        if ("verification", record.place) not in outputs:
            faults.add("lost", f"{record.place} has no output")
    # Ownership passes on what is not its affair. It is silent about notifications of no purchase, and about news of a
    # purchase that nobody owns yet: these come with the owner.
    for record in evidence.topics.get("verified", []):
        data = record.data
        if data.get("kind") == "notification" and not data.get("parts"):
            continue
        account = (data.get("report") or {}).get("account")
        if (record.type == "fact.noted.v1" or account) and ("ownership", record.place) not in outputs:
            faults.add("lost", f"{record.place} has no output")


def _accepted_is_received(evidence, faults):
    there = {record.id for record in evidence.topics.get("received", [])}
    for identity in sorted(evidence.accepted - there):
        faults.add("lost", f"accepted event {identity} is not in received")


def _one_verdict_per_proof(evidence, faults):
    verdicts = collections.defaultdict(set)
    for record in evidence.topics.get("verified", []):
        if record.type in TERMINAL:
            data = record.data
            verdicts[data.get("environment"), data.get("kind"), data["proof"]].add(TERMINAL[record.type])
    for (_, kind, proof), found in verdicts.items():
        if len(found) > 1:
            faults.add("contradicted", f"{kind} {proof} is {' and '.join(sorted(found))}")


def _ids_take_effect_once(evidence, faults):
    """An id may come from two records where these are one event received twice; in the change feed it stands once."""
    source = {}
    for records in evidence.topics.values():
        for record in records:
            source[record.place] = record.id
    for topic in ("verified", "owned", "entitlements", "entitlement-state"):
        places = collections.defaultdict(list)
        for record in evidence.topics.get(topic, []):
            places[record.id].append(record)
        for identity, records in places.items():
            if len(records) == 1:
                continue
            # A tick of the clock comes from no record. It may be written again before it has been read; it names its instant,
            # and what it makes expire is in the change feed once.
            origins = [
                f"{record.header('ce_origintopic')}/{record.header('ce_originpartition')}/{record.header('ce_originoffset')}"
                for record in records
                if record.type != "clock.ticked.v1"
            ]
            if topic.startswith("entitlement"):
                faults.add("doubled", f"{topic}: {identity} stands {len(records)} times")
            elif len(set(origins)) < len(origins):
                faults.add("doubled", f"{topic}: {identity} comes twice from one record")


def _transactions_take_effect_once(evidence, faults):
    credits, permits = collections.Counter(), collections.Counter()
    for record in evidence.topics.get("entitlements", []):
        data = record.data
        holder = data["environment"], data["account"]
        if record.type in ("credit.added.v1", "credit.removed.v1"):
            credits[(*holder, data["unit"], data["entry"])] += 1
        if record.type == "payment.finishable.v1" and data["content"] == "granted" and "transactionId" in data:
            permits[(*holder, data["transactionId"])] += 1
    for what, count in (*credits.items(), *permits.items()):
        if count > 1:
            faults.add("doubled", f"{'/'.join(map(str, what))} took effect {count} times")


def _versions(evidence, faults):
    versions = collections.defaultdict(list)
    for record in evidence.topics.get("entitlements", []):
        data = record.data
        if record.key.decode() != f"{data['environment']}/{data['account']}":
            faults.add("misplaced", f"{record.place} is of {data['account']} and has the key {record.key!r}")
        versions[data["environment"], data["account"]].append((record.partition, data["version"]))
    for (_, account), found in versions.items():
        if len({partition for partition, _ in found}) > 1:
            faults.add("misplaced", f"{account} stands in several partitions")
        numbers = [version for _, version in found]
        if numbers == list(range(1, len(numbers) + 1)):
            continue
        kind = "reordered" if sorted(numbers) == list(range(1, len(numbers) + 1)) else "gap"
        faults.add(kind, f"versions of {account}: {numbers[:20]}")


def _state_is_the_fold(evidence, faults):
    active, balances, versions, permits, changes, states = {}, {}, {}, {}, {}, {}
    for record in evidence.topics.get("entitlements", []):
        data = record.data
        holder = data["environment"], data["account"]
        versions[holder] = max(versions.get(holder, 0), data["version"])
        changes[(*holder, str(data["version"]))] = (record.id, record.type.rsplit(".v", 1)[0])
        if record.type.startswith("entitlement."):
            key = (*holder, data["entitlement"])
            if states.get(key, {"active": False}) != data["before"]:
                faults.add("contradicted", f"{record.place}: {states.get(key)} becomes {data}")
            states[key] = data["after"]
            active[key] = ("1" if data["after"]["active"] else "0", str(data["version"]))
        elif record.type in ("credit.added.v1", "credit.removed.v1"):
            key = (*holder, data["unit"])
            signed = data["amount"] if record.type == "credit.added.v1" else -data["amount"]
            if balances.get(key, 0) != data["balanceBefore"] or data["balanceBefore"] + signed != data["balanceAfter"]:
                faults.add("contradicted", f"{record.place}: a balance of {balances.get(key, 0)} becomes {data}")
            balances[key] = data["balanceAfter"]
        elif record.type == "payment.finishable.v1":
            permits[(*holder, data["proof"])] = (data["content"], data["reason"])
    rows = evidence.tables
    _compare(faults, "entitlement", active, {
        (row["environment"], row["account"], row["entitlement"]): (row["active"], row["version"])
        for row in rows["entitlement"]
    })
    _compare(faults, "balance", {key: str(value) for key, value in balances.items() if value}, {
        (row["environment"], row["account"], row["unit"]): row["amount"] for row in rows["balance"] if row["amount"] != "0"
    })
    _compare(faults, "version", {key: str(value) for key, value in versions.items()}, {
        (row["environment"], row["account"]): row["version"] for row in rows["account"] if row["version"] != "0"
    })
    _compare(faults, "permit", permits, {
        (row["environment"], row["account"], row["proof"]): (row["content"], row["reason"]) for row in rows["permit"]
        # Refusals and what waits are answers to who asks, and change nothing that the feed could tell.
        if row["status"] == "finishable"
    })
    _compare(faults, "change", changes, {
        (row["environment"], row["account"], row["version"]): (row["event"], row["type"]) for row in rows["change"]
    })


def _compare(faults, what, topic, store):
    for key in sorted(topic.keys() | store.keys()):
        if topic.get(key) != store.get(key):
            faults.add("state", f"{what} {'/'.join(key)}: the topic says {topic.get(key)}, the store {store.get(key)}")


def _newest_state(evidence, faults):
    changes, states = {}, {}
    for record in evidence.topics.get("entitlements", []):
        if record.type.startswith("entitlement."):
            data = record.data
            changes[f"{data['environment']}/{data['account']}/{data['entitlement']}"] = record.value
    for record in evidence.topics.get("entitlement-state", []):
        states[record.key.decode()] = record.value
    for key in sorted(changes.keys() | states.keys()):
        if changes.get(key) != states.get(key):
            faults.add("state", f"entitlement-state of {key} is not the newest change")


def _poison(evidence, faults):
    found = collections.Counter()
    for record in evidence.topics.get("quarantine", []):
        if record.header("purchases-quarantine-topic").endswith("received"):
            place = record.header("purchases-quarantine-partition"), record.header("purchases-quarantine-offset")
            found[int(place[0]), int(place[1])] += 1
    for place in evidence.poison:
        if found[place] != 1:
            faults.add("lost" if found[place] == 0 else "doubled", f"poison received/{place} is {found[place]} times aside")


def _forged(evidence, faults):
    """A forged proof is rejected, and nothing else speaks of it but the stable answer to who sent it."""
    verdicts = collections.defaultdict(set)
    for record in evidence.topics.get("verified", []):
        if record.type != "fact.noted.v1" and (proof := record.data.get("proof")) in evidence.forged:
            verdicts[proof].add(record.type)
    for proof in evidence.forged:
        if verdicts[proof] != {"purchase.rejected.v1"}:
            faults.add("forged", f"the verdict on the forged {proof} is {sorted(verdicts[proof]) or 'missing'}")
    for topic, types in (("owned", ("purchase.owned.v1", "purchase.unowned.v1")), ("entitlements", None)):
        for record in evidence.topics.get(topic, []):
            data = record.data if types is None or record.type in types else {}
            if data.get("proof") in evidence.forged or (data.get("cause") or {}).get("proof") in evidence.forged:
                faults.add("forged", f"{record.place} rests on a forged proof")
    for row in evidence.tables["permit"]:
        if row["proof"] in evidence.forged and row["status"] != "refused":
            faults.add("forged", f"the permit for the forged {row['proof']} is {row['status']}")


def _effects(evidence):
    """What doesn't depend on when and in which order things were received: the credits that each transaction brought, less
    what its refunds took. Whose they are may depend on it, where two accounts claim one purchase; and so may which of an
    account's purchases an entitlement names."""
    credits = collections.Counter()
    for record in evidence.topics.get("entitlements", []):
        if record.type in ("credit.added.v1", "credit.removed.v1"):
            data = record.data
            if "transactionId" in data:
                sign = 1 if record.type == "credit.added.v1" else -1
                credits[data["unit"], data["transactionId"]] += sign * data["amount"]
    return {key: amount for key, amount in credits.items() if amount}


def differences(peace, torture):
    """The same events in peace, in their own order and once each, have the same effects."""
    a, b = _effects(peace), _effects(torture)
    keys = [key for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)]
    return [f"{'/'.join(key)}: {a.get(key)} in peace, {b.get(key)} here" for key in keys[:20]]


# The audit log: a leaf's form, RFC 6962's tree, and checkpoints of it.


def leaf(record):
    def sized(value):
        return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value

    form = struct.pack(">q", record.timestamp) + sized(record.key) + struct.pack(">i", len(record.headers))
    for name, value in record.headers:
        form += sized(name.encode()) + sized(value)
    return hashlib.sha256(b"\0" + form + sized(record.value)).digest()


def roots(leaves, sizes):
    """The root at each of these sizes, from one pass: the perfect subtrees' hashes from the largest to the smallest."""
    wanted, found, stack = sorted(sizes), {}, []
    if wanted and wanted[0] == 0:
        found[0] = hashlib.sha256(b"").digest()
    wanted = set(wanted)
    for size, digest in enumerate(leaves, 1):
        stack.append((1, digest))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            (width, right), (_, left) = stack.pop(), stack.pop()
            stack.append((2 * width, hashlib.sha256(b"\1" + left + right).digest()))
        if size in wanted:
            root = stack[-1][1]
            for _, left in reversed(stack[:-1]):
                root = hashlib.sha256(b"\1" + left + root).digest()
            found[size] = root
    return found


def _trees(evidence, faults, idle, prefix):
    checkpoints = collections.defaultdict(list)
    for record in evidence.topics.get("audit", []):
        if record.type == "audit.checkpointed.v1" and record.data["scope"] == "partition":
            data = record.data
            checkpoints[data["topic"].removeprefix(prefix), data["partition"]].append(data)
    rows = {(row["topic"].removeprefix(prefix), int(row["partition"])): row for row in evidence.tables["audit_tree"]}
    leaves = collections.defaultdict(list)
    for topic in AUDITED:
        for record in evidence.topics.get(topic, []):
            leaves[topic, record.partition].append(leaf(record))
    for tree in sorted(leaves.keys() | checkpoints.keys() | rows.keys()):
        here, name = leaves.get(tree, []), f"{tree[0]}/{tree[1]}"
        row = rows.get(tree)
        if idle and here and (row is None or int(row["size"]) != len(here)):
            faults.add("audit", f"{name} holds {len(here)} records, its tree {row['size'] if row else 0}")
        sizes = {data["size"] for data in checkpoints[tree]} | ({int(row["size"])} if row else set())
        known = roots(here, sizes)
        for data in checkpoints[tree]:
            root = known.get(data["size"])
            lines = data["note"].split("\n")
            if root is None or root.hex() != data["root"] or base64.b64decode(lines[2]) != root or int(lines[1]) != data["size"]:
                faults.add("audit", f"{name}: the checkpoint of {data['size']} signs for other records")
        if row and known.get(int(row["size"])) is not None and known[int(row["size"])].hex() != row["root"]:
            faults.add("audit", f"{name}: the store's root of {row['size']} is another")
        numbers = [data["size"] for data in checkpoints[tree]]
        if numbers != sorted(numbers):
            faults.add("audit", f"{name}: checkpoints shrink: {numbers[:20]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", required=True)
    parser.add_argument("--store", required=True)
    parser.add_argument("--prefix", default="purchases.")
    parser.add_argument("--group", default="purchases")
    parser.add_argument("--accepted", type=pathlib.Path, help="ids, one a line")
    parser.add_argument("--poison", type=pathlib.Path, help="PARTITION OFFSET, one a line")
    parser.add_argument("--idle", action="store_true", help="nothing is under way: everything must have been worked off")
    options = parser.parse_args()
    evidence = reading.read(options.log, options.store, options.prefix, options.group)
    if options.accepted:
        evidence.accepted = set(options.accepted.read_text().split())
    if options.poison:
        evidence.poison = {tuple(map(int, line.split())) for line in options.poison.read_text().splitlines()}
    faults = check(evidence, options.idle, options.prefix)
    print(json.dumps({topic: len(records) for topic, records in evidence.topics.items()}))
    for line in faults.lines():
        print(line)
    print("no fault" if not faults.kinds else f"{sum(map(len, faults.kinds.values()))} faults")
    return 1 if faults.kinds else 0


if __name__ == "__main__":
    sys.exit(main())
