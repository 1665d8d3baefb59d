"""The real fold beside the model (`model.py`): random histories, played through ownership and entitlements, must end as the
model says: what each account may use at each instant and until when, as computed and as published, who owns each purchase,
the balances, and the permits to finish.

    PURCHASES_MODEL_HISTORIES=100000 PURCHASES_MODEL_SEED=7 python run.py --only judge_model     (or: make model)
"""

import copy
import json
import os
import pathlib
import random
import subprocess
from concurrent.futures import ProcessPoolExecutor

import model
import model_cases
from judging import ROOT

HISTORIES = int(os.environ.get("PURCHASES_MODEL_HISTORIES", 2500))
SEED = int(os.environ.get("PURCHASES_MODEL_SEED", 0)) or random.SystemRandom().randrange(1, 2**62)
PROGRAM = pathlib.Path(os.environ.get("PURCHASES_MODEL_PROGRAM", ROOT / ".build/debug/PurchasesHistories"))
# Histories that one process plays and judges at a time.
BATCH = 250
# Histories whose answers are changed, a few at a time.
CHANGED = 100
WORKERS = min(8, os.cpu_count() or 1)


def said(*arguments, lines=b""):
    assert PROGRAM.exists(), f"{PROGRAM} is not built"
    run = subprocess.run([str(PROGRAM), *map(str, arguments)], input=lines, capture_output=True)
    assert run.returncode == 0, run.stderr.decode(errors="replace")[-2000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


def rows(history, name, width):
    return {tuple(row[:width]): row[width:] for row in history[name]}


def differences(history, catalogue):
    """What is otherwise than the model says, as (kind, text); none where all is right."""
    judge = model.Model(history, catalogue)
    found = []

    def compare(kind, ours, right):
        for key in sorted(set(ours) | set(right), key=str):
            one, other = ours.get(key, "nothing"), right.get(key, "nothing")
            if one != other:
                found.append((kind, f"{kind} {key}: {one}, and not {other}"))

    accounts = judge.accounts()
    # Permits as the last record left them, without those of spends, whose outcome is in the balances.
    permits = {key: tuple(row) for key, row in rows(history, "permits", 3).items() if ":" not in key[2]}
    for name in judge.waited:
        permits.pop(name, None)
    compare("permit", permits, {name: row for name, row in judge.permits.items() if name not in judge.waited})
    owners = {key: chain.owner()[0] for key, chain in judge.chains.items()}
    compare("owner", {key: row[0] for key, row in rows(history, "owners", 2).items() if row[0]},
            {key: owner for key, owner in owners.items() if owner})
    compare("balance", {key: row[0] for key, row in rows(history, "balances", 3).items() if row[0]},
            {account + (unit,): amount for account in accounts
             for unit, amount in judge.balances(*account).items() if amount})
    for answer in history["answers"]:
        right = {
            account + (entitlement,): end for account in accounts
            for entitlement, end in judge.access(*account, answer["at"]).items()}
        for kind in compared(answer, judge):
            compare(f"{kind} at {answer['at']}", {tuple(row[:3]): row[3] for row in answer[kind]}, right)
    if is_quiet(history, judge):
        revoked = [row for row in history["events"] if row[0].endswith(" entitlement.revoked.v1")]
        compare("revoked", {row[0]: row[1] for row in revoked}, {})
    return found


def compared(answer, judge):
    """The answers of an instant that count. What was published is told by a clock that Apple's isn't ahead of."""
    signed = max((one.signedDate for chain in judge.chains.values() for one in chain.transactions), default=0)
    return [kind for kind in ("view", "published") if kind in answer and (kind == "view" or answer["at"] >= signed)]


def is_quiet(history, judge):
    """Nothing in it takes access away but time: no refund, no order, no change of hands, no other level."""
    statements = [one for chain in judge.chains.values() for one in chain.transactions]
    changes = any(one.revocationDate is not None or one.isUpgraded for one in statements)
    orders = any(arrival["data"].get("fact") == "access.ordered" for arrival in history["arrivals"])
    mixed = any(
        len({(one.productId, one.token) for one in chain.transactions}) > 1 for chain in judge.chains.values())
    return history["policy"] == "keep" and not (changes or orders or mixed)


def judged(seed, first, count):
    """Histories that end otherwise, each with its differences."""
    catalogue, *histories = said(seed, count, first)
    assert len(histories) == count
    catalogue = model.Catalogue(catalogue)
    wrong = []
    for history in histories:
        if found := differences(history, catalogue):
            wrong.append((history, found))
    return wrong


def smaller(history, kind, catalogue):
    """The same difference with as few arrivals as it takes."""
    def shows(candidate):
        try:
            (played,) = said("play", lines=json.dumps(candidate).encode() + b"\n")
        except AssertionError:
            return None
        return played if any(one == kind or one.split(" at ")[0] == kind.split(" at ")[0]
                             for one, _ in differences(played, catalogue)) else None

    index = 0
    while index < len(history["arrivals"]):
        candidate = {**history, "arrivals": history["arrivals"][:index] + history["arrivals"][index + 1:]}
        played = shows(candidate)
        if played:
            history = played
        else:
            index += 1
    return history


def told(history):
    """A history as a person reads it."""
    lines = [f"policy {history['policy']}"]
    for arrival in history["arrivals"]:
        data = arrival["data"]
        tick = " tick" if arrival.get("tick") else ""
        if arrival["type"] != "purchase.verified":
            lines.append(f"{arrival['at']}{tick} {data['fact']} {json.dumps(data['data'])}")
            continue
        report = data["report"]
        lines.append(f"{arrival['at']}{tick} {report['type']} by {report.get('account')} proof {data['proof'][:8]}")
        lines += [f"    {part['digest'][:8]} {json.dumps(part['payload'])}" for part in data["parts"]]
    return "\n".join(lines)


def judge_the_model_knows_the_cases():
    model_cases.check()


def judge_the_fold_ends_as_the_model_says():
    print(f"model: {HISTORIES} histories, seed {SEED}")
    starts = range(0, HISTORIES, BATCH)
    wrong = []
    with ProcessPoolExecutor(WORKERS) as pool:
        for batch in pool.map(judged, [SEED] * len(starts), starts, [min(BATCH, HISTORIES - first) for first in starts]):
            wrong += batch
    if not wrong:
        return
    catalogue = model.Catalogue(said(SEED, 0)[0])
    kinds = {}
    for history, found in wrong:
        for kind in {kind.split(" at ")[0] for kind, _ in found}:
            kinds.setdefault(kind, []).append((history, found))
    texts = []
    for kind, cases in sorted(kinds.items()):
        history = smaller(cases[0][0], kind, catalogue)
        what = "\n".join(text for one, text in differences(history, catalogue))
        texts.append(f"{kind}: {len(cases)} histories; first {cases[0][0]['history']}\n{told(history)}\n{what}")
    raise AssertionError(
        f"seed {SEED}: {len(wrong)} of {HISTORIES} histories end otherwise than the model says\n" + "\n".join(texts))


def doctored(history, judge, dice):
    """A copy with one answer changed, or None where there is nothing of the kind to change."""
    history = copy.deepcopy(history)
    name = dice.choice(["added", "removed", "end", "balances", "owners", "permits"])
    if name in ("balances", "owners", "permits"):
        known = [row for row in history[name] if tuple(row[:3]) not in judge.waited and ":" not in row[2]]
        if not known:
            return None
        row = dice.choice(known)
        if name == "balances":
            row[3] += 1
        elif name == "owners":
            row[2] = "somebody" if row[2] != "somebody" else ""
        else:
            row[3:] = ["refused", "none", "bad-signature"]
        return history
    lists = [answer[kind] for answer in history["answers"] for kind in compared(answer, judge)]
    if name == "added":
        dice.choice(lists).append(["Production", "nobody", "platinum", None])
        return history
    lists = [rows for rows in lists if rows]
    if not lists:
        return None
    rows = dice.choice(lists)
    row = dice.choice(rows)
    if name == "end":
        row[3] = 1 if row[3] is None else row[3] + 1
    else:
        rows.remove(row)
    return history


def judge_changed_answers_are_found():
    catalogue, *histories = said(SEED, CHANGED)
    catalogue = model.Catalogue(catalogue)
    dice = random.Random(SEED)
    planted = 0
    for history in histories:
        before = differences(history, catalogue)
        for _ in range(3):
            changed = doctored(history, model.Model(history, catalogue), dice)
            if changed:
                planted += 1
                assert differences(changed, catalogue) != before, f"seed {SEED}: not found in {changed}"
    assert planted > CHANGED, planted
