"""The day that is played: what the demo's local App Store and its clients posted, once more, in another order and with
repetitions, through the gateway's HTTP."""

import base64
import hashlib
import http.client
import json
import random
import subprocess
import threading
import time

BATCH = 20
# Longer than the gateway's own time for a durable answer.
ANSWER_SECONDS = 40


def corpus(program, folder, accounts, seed):
    """Plays the demo on two SQLite files, and answers what was posted: (route, body) each, and where the demo was kept."""
    kept = folder / "peace"
    log, store = f"sqlite:{folder / 'peace.log.db'}", f"sqlite:{folder / 'peace.db'}"
    demo = ["demo", "--accounts", accounts, "--seed", seed, "--log", log, "--store", store, "--keep", kept]
    subprocess.run([program, *map(str, demo)], check=True, stdout=subprocess.DEVNULL)
    posts = []
    tail = subprocess.run([program, "tail", "received", "--log", log], check=True, stdout=subprocess.PIPE)
    for text in tail.stdout.splitlines():
        record = json.loads(text)
        headers = {header["name"]: header.get("value") for header in record["headers"]}
        if headers["ce_type"] == "store.notified.v1":
            posts.append(("/v1/notifications", record["value"]))
        elif headers["ce_type"] != "operator.acted.v1":
            posts.append(("/v1/events", record["value"]))
    return posts, kept, log, store


def shuffled(posts, dice: random.Random, duplicates):
    """In another order, and a share of them twice or more."""
    again = [dice.choice(posts) for _ in range(int(len(posts) * duplicates))]
    order = posts + again
    dice.shuffle(order)
    return order


def forgeries(posts, dice: random.Random, share):
    """Posts whose proofs name a genuine transaction and are not what was signed, and the digests of these proofs."""
    members = {"/v1/events": "signedTransaction", "/v1/notifications": "signedPayload"}
    found = [(route, body, members[route]) for route, body in posts if _is_well_formed(body.get(members[route]))]
    forged, digests = [], set()
    for route, body, member in dice.sample(found, int(len(found) * share)):
        head, payload, signature = body[member].split(".")
        if dice.random() < 0.5:
            claims = json.loads(_decoded(payload))
            claims |= {"quantity": 1_000_000, "forged": dice.random()}
            payload = _encoded(json.dumps(claims).encode())
        else:
            spoiled = bytearray(_decoded(signature))
            spoiled[dice.randrange(len(spoiled))] ^= 1 << dice.randrange(8)
            signature = _encoded(bytes(spoiled))
        proof = ".".join((head, payload, signature))
        if proof != body[member]:
            forged.append((route, {**body, member: proof}))
            digests.add(hashlib.sha256(proof.encode()).hexdigest())
    return forged, digests


def _is_well_formed(proof):
    """Some of the day's proofs are broken already."""
    try:
        head, payload, signature = proof.split(".")
        return isinstance(json.loads(_decoded(payload)), dict) and len(_decoded(signature)) == 64
    except (AttributeError, ValueError):
        return False


def _decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Load:
    """Posts from several threads, each until it is answered 2xx: what a client does that loses nothing."""

    def __init__(self, addresses, posts, seconds, threads=4):
        self.addresses = addresses
        self.accepted, self.count, self.retried = set(), 0, 0
        self.lock = threading.Lock()
        self.total = len(posts)
        self.began = time.monotonic()
        self.seconds = seconds
        shares = [posts[number::threads] for number in range(threads)]
        self.threads = [threading.Thread(target=self._post, args=(number, share)) for number, share in enumerate(shares)]
        self.stopping = threading.Event()
        self.refused = []
        for thread in self.threads:
            thread.start()

    def _post(self, number, posts):
        events = [body for route, body in posts if route == "/v1/events"]
        notices = [body for route, body in posts if route == "/v1/notifications"]
        batches = [("/v1/events", events[place : place + BATCH]) for place in range(0, len(events), BATCH)]
        batches += [("/v1/notifications", [notice]) for notice in notices]
        random.Random(number).shuffle(batches)
        share, done = len(posts), 0
        for route, bodies in batches:
            # Spread over the time there is, so that faults meet work.
            ahead = done / share * self.seconds - (time.monotonic() - self.began)
            if ahead > 0 and self.stopping.wait(ahead):
                return
            if not self._until_taken(number, route, bodies):
                return
            done += len(bodies)

    def _until_taken(self, number, route, bodies):
        body = "\n".join(json.dumps(body, separators=(",", ":")) for body in bodies)
        kind = "application/json" if route == "/v1/notifications" else "application/x-ndjson"
        while not self.stopping.is_set():
            host, port = self.addresses[number % len(self.addresses)]
            try:
                connection = http.client.HTTPConnection(host, port, timeout=ANSWER_SECONDS)
                connection.request("POST", route, body, {"content-type": kind})
                answer = connection.getresponse()
                said = answer.read()
                connection.close()
            except (OSError, http.client.HTTPException):
                answer = None
            if answer is not None and answer.status in (200, 202, 207):
                results = json.loads(said) if said else {}
                ids = [result["id"] for result in results.get("results", [results]) if result.get("id")]
                with self.lock:
                    self.accepted.update(ids)
                    self.count += len(bodies)
                return True
            if answer is not None and answer.status < 500:
                with self.lock:
                    self.refused.append((answer.status, said[:500], body[:200]))
                return True
            with self.lock:
                self.retried += 1
            self.stopping.wait(0.2)
        return False

    @property
    def is_done(self):
        return not any(thread.is_alive() for thread in self.threads)

    def wait(self, seconds):
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0, end - time.monotonic()))
        return self.is_done

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
