"""What Apple's documentation says about in-app purchases, written down once more and naively: keep every statement, and for
each question sort and scan them all.

It is slow on purpose, knows nothing of our code and shares nothing with it but the catalogue's JSON and the contract of the
topic `verified` (Schemas/purchase.verified.v1.json, fact.noted.v1.json). Each rule names its page; pages of Apple's are
under developer.apple.com/documentation. Where Apple leaves the choice to the developer the rule is docs/access.md's, and
says so.

    Model(history, catalogue).access(account, instant)
"""

import dataclasses
import re

FOREVER = float("inf")

# docs/access.md, "Which statement counts": of statements signed at one instant a notification outranks a backfill, and
# that one a client.
SOURCES = ["client", "backfill", "notification"]

# appstoreserverapi/revocationpercentage: milliunits of a percent, so 100% is 100000.
WHOLE = 100_000

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
NO_UUID = "00000000-0000-0000-0000-000000000000"

CONSUMABLE = "Consumable"
RESTORABLE = ("Non-Consumable", "Non-Renewing Subscription", "Auto-Renewable Subscription")


@dataclasses.dataclass
class Statement:
    """A payload that Apple signed, and who brought it."""

    payload: dict
    digest: str
    source: str

    def __getattr__(self, name):
        return self.payload.get(name)

    @property
    def rank(self):
        # appstoreserverapi/signeddate, and for equal dates docs/access.md, "Which statement counts".
        return (self.signedDate, self.revocationDate is not None, SOURCES.index(self.source), self.digest)

    @property
    def token(self):
        """The account that the statement names."""
        # storekit/supporting-family-sharing-in-your-app: a member has transactions of its own; the purchaser's token isn't it.
        if self.inAppOwnershipType in ("FAMILY_SHARED", "ASSIGNED"):
            return None
        # appstoreserverapi/appaccounttoken: a UUID; docs/access.md: anything else, and the UUID of zeroes, is none.
        text = self.appAccountToken
        if not isinstance(text, str) or not UUID.fullmatch(text) or text == NO_UUID:
            return None
        return text.lower()


def newest(statements):
    return max(statements, key=lambda statement: statement.rank, default=None)


@dataclasses.dataclass
class Stretch:
    """Access from `start` up to but not including `end`. `revoked`: it ended for another reason than time."""

    start: float
    end: float
    revoked: bool = False


@dataclasses.dataclass
class Chain:
    """All that shares an original transaction."""

    environment: str
    original: str
    transactions: list = dataclasses.field(default_factory=list)
    renewals: list = dataclasses.field(default_factory=list)
    # By what authenticated callers said, in recorded order: the owner, those it is shared with, and what was decided before.
    claimant: str = None
    sharers: list = dataclasses.field(default_factory=list)
    decided: set = dataclasses.field(default_factory=set)
    # An operator's newest transfer: (to, log time, the token then).
    transfer: tuple = None
    orders: set = dataclasses.field(default_factory=set)

    # MARK: whose it is

    @property
    def is_restorable(self):
        """storekit/restoring-purchased-products: consumables aren't restored. docs/access.md: what nothing is known of, or not
        its type, stays where it is."""
        return bool(self.transactions) and all(one.type in RESTORABLE for one in self.transactions)

    def named(self):
        return newest([one for one in self.transactions + self.renewals if one.token])

    def owner(self):
        """Account and why. docs/access.md, "Whose it is"."""
        named = self.named()
        if self.transfer:
            to, at, token = self.transfer
            if named and named.token != token and named.signedDate > at:
                return named.token, "token"
            return to, "order"
        if named:
            return named.token, "token"
        return (self.claimant, "claim") if self.claimant else (None, "none")

    def holders(self):
        """Owner and sharers: what a token or an operator binds is shared with nobody, nor are credits."""
        owner, basis = self.owner()
        if owner is None:
            return []
        is_shared = basis == "claim" and self.is_restorable
        return [owner] + [one for one in self.sharers if is_shared and one != owner]

    def claim(self, account, restore, name, policy):
        """Decided once, in recorded order."""
        if self.claimant is None:
            self.claimant = account
        elif not restore or not self.is_restorable or self.named() or self.transfer or policy == "keep":
            return
        elif policy == "share":
            self.sharers += [account] if account not in [self.claimant, *self.sharers] else []
            return
        elif (account, name) not in self.decided:
            self.claimant = account
        self.decided.add((account, name))

    # MARK: what Apple says of it

    def purchases(self, catalogue):
        """The newest statement of each purchase in the chain, with the product as the catalogue knows it or None."""
        groups = {}
        for statement in self.transactions:
            groups.setdefault(self.name(statement), []).append(statement)
        for name, group in groups.items():
            statement = newest(group)
            yield name, statement, catalogue.product(statement)

    def name(self, statement):
        if statement.type == "Auto-Renewable Subscription":
            # appstoreserverapi/weborderlineitemid: it identifies purchase events across devices, renewals included.
            line = statement.webOrderLineItemId
            name = ("line", line) if line else ("date", statement.purchaseDate)
            # appstoreserverapi/additionaltransactionreason: an added seat's transaction stands beside the first one.
            return name + (statement.transactionId,) if statement.multiSeatInfo is not None else name
        if statement.type in ("Non-Consumable", "Non-Renewing Subscription"):
            # appstoreserverapi/originaltransactionid: a restore has a transaction id of its own and the same original.
            return ("once",)
        return ("item", statement.transactionId)

    def stretches(self, catalogue):
        """Entitlement and stretch of everything but non-renewing subscriptions, which are a matter of the account."""
        purchases = list(self.purchases(catalogue))
        for name, statement, product in purchases:
            if product is None:
                continue
            if statement.type == "Non-Consumable":
                # appstoreserverapi/originalpurchasedate: of the first transaction, whatever restore the statement is of.
                start = statement.originalPurchaseDate or statement.purchaseDate
                stretch = revoke(Stretch(start, FOREVER), statement)
            elif statement.type == "Auto-Renewable Subscription":
                stretch = self.period(statement, [other for _, other, _ in purchases])
            else:
                continue
            for entitlement in product["entitlements"]:
                yield entitlement, name, stretch

    def period(self, statement, purchases):
        # appstoreserverapi/expiresdate.
        end = statement.expiresDate
        renewal = newest(self.renewals)
        if renewal and renewal.gracePeriodExpiresDate is not None:
            # appstoreserverapi/graceperiodexpiresdate and appstoreservernotifications/notificationtype, GRACE_PERIOD: service
            # goes on until then, for the period whose renewal failed: the last one when Apple said so.
            last = max(
                (one for one in purchases if one.purchaseDate <= renewal.signedDate),
                key=lambda one: one.purchaseDate, default=None)
            if last is not None and (last.purchaseDate == statement.purchaseDate or beside(last, statement)):
                end = max(end, renewal.gracePeriodExpiresDate)
        # appstoreservernotifications/notificationtype, UPGRADE: goes into effect at once and begins a period; and so for all
        # later ones, since there is one active subscription in a group.
        for other in purchases:
            if other.purchaseDate > statement.purchaseDate and not beside(other, statement):
                end = min(end, other.purchaseDate)
        return revoke(Stretch(statement.purchaseDate, end), statement)

    def left(self, statement, product):
        """Whether a refund left anything of a purchase."""
        if statement.revocationDate is None:
            return True
        if statement.type != CONSUMABLE:
            return False
        if product is None:
            return statement.revocationPercentage not in (None, WHOLE)
        return any(one is statement and amount for one, _, amount in self.credits(Catalogue.of(product)))

    def credits(self, catalogue):
        """Unit and amount of each consumable, what refunds left of it."""
        for _, statement, product in self.purchases(catalogue):
            if product and statement.type == CONSUMABLE:
                # appstoreserverapi/quantity: the number of consumables purchased.
                worth = product["credits"]["amount"] * int(statement.quantity or 1)
                yield statement, product["credits"]["unit"], worth - refunded(worth, statement)


def beside(one, other):
    """appstoreserverapi/additionaltransactionreason: two transactions of one period, of which none replaces the other."""
    has_seats = one.multiSeatInfo is not None and other.multiSeatInfo is not None
    is_same_line = one.webOrderLineItemId is not None and one.webOrderLineItemId == other.webOrderLineItemId
    return has_seats and (is_same_line or one.expiresDate == other.expiresDate)


def refunded(worth, statement):
    if statement.revocationDate is None:
        return 0
    # storekit/transaction/revocationpercentage: of the full quantity; docs/access.md: half a credit is one.
    share = WHOLE if statement.revocationPercentage is None else statement.revocationPercentage
    return (2 * worth * share + WHOLE) // (2 * WHOLE)


def revoke(stretch, statement):
    """appstoreserverapi/revocationdate. docs/access.md: no later than the day on which Apple said so."""
    if statement.revocationDate is None:
        return stretch
    stop = min(statement.revocationDate, statement.signedDate)
    return Stretch(stretch.start, min(stretch.end, stop), True)


def stopped(stretches, orders, entitlement):
    """docs/access.md: what began before an operator's revocation ends, and where that has an end, what is left then goes on;
    what begins later counts in any case."""
    for at, kind, which, until in orders:
        if kind != "revoke" or which != entitlement:
            continue
        rest = []
        for one in stretches:
            if not one.start < at < one.end:
                rest.append(one)
                continue
            rest.append(Stretch(one.start, at, True))
            if until is not None and until < one.end:
                rest.append(Stretch(until, one.end, one.revoked))
        stretches = rest
    return stretches


class Catalogue:
    def __init__(self, document):
        self.products = {product["id"]: product for product in document["products"]}

    @classmethod
    def of(cls, product):
        return cls({"products": [product]})

    # App Store Connect Help, "In-App Purchase types".
    TYPES = {
        "consumable": CONSUMABLE, "non-consumable": "Non-Consumable", "non-renewing": "Non-Renewing Subscription",
        "auto-renewable": "Auto-Renewable Subscription",
    }

    def product(self, statement):
        product = self.products.get(statement.productId)
        return product if product and self.TYPES[product["type"]] == statement.type else None


DAY = 86_400_000


def length(duration):
    """Of the durations that random histories use: whole days."""
    return int(re.fullmatch(r"P(\d+)D", duration)[1]) * DAY


class Model:
    """A history, record by record."""

    def __init__(self, history, catalogue):
        self.policy = history["policy"]
        self.catalogue = catalogue
        self.chains = {}
        # (environment, account) -> orders as (log time, kind, entitlement, until), in recorded order.
        self.orders = {}
        self.decided = set()
        # (environment, account) -> idempotency key -> (unit, amount taken).
        self.spends = {}
        # (environment, account, proof) -> (status, content, reason).
        self.permits = {}
        # Reports whose answer is still open: (environment, account, proof) -> (chain, statement).
        self.open = {}
        # Those that waited for a beginning: at which record or tick it is noticed is no rule of Apple's.
        self.waited = set()
        # What accounts had before the record in hand: what they send again gives nothing again.
        self.had = set()
        self.clock = 0
        for arrival in history["arrivals"]:
            self.take(arrival)

    # MARK: records

    def take(self, arrival):
        data, at = arrival["data"], arrival["at"]
        self.clock = max(self.clock, at)
        if arrival["type"] == "purchase.verified":
            self.proof(data, at)
        else:
            getattr(self, data["fact"].replace(".", "_"))(data["data"], at)
        self.answer()
        self.had = {
            (environment, holder, original, name) for (environment, original), chain in self.chains.items()
            for name, statement, product in chain.purchases(self.catalogue) if product
            if chain.left(statement, product) for holder in chain.holders()}

    def chain(self, environment, original):
        return self.chains.setdefault((environment, original), Chain(environment, original))

    def proof(self, data, at):
        statements = [Statement(part["payload"], part["digest"], part["source"]) for part in data["parts"]]
        chain = self.chain(data["environment"], statements[0].originalTransactionId)
        for part, statement in zip(data["parts"], statements):
            (chain.renewals if part["kind"] == "renewal-info" else chain.transactions).append(statement)
        report = data["report"]
        if report["type"] in ("payment.purchased", "payment.restored"):
            sender = report.get("account")
            if sender:
                chain.claim(sender, report["type"] == "payment.restored", data["proof"], self.policy)
            # Who waits for an answer: the sender, or else the account that the proof names.
            waits = sender or statements[0].token
            name = (data["environment"], waits, data["proof"])
            if waits and self.permits.get(name, ("pending",))[0] == "pending":
                self.open[name] = (chain, statements[0])

    def purchase_claimed(self, data, at):
        chain = self.chain(data["environment"], data["originalTransactionId"])
        chain.claim(data["account"], True, "attempt " + data["attemptId"], self.policy)

    def access_ordered(self, data, at):
        if data["action"] == "transfer":
            return self.transferred(data, at)
        # Decided once.
        name = (data["environment"], data["account"], data["orderId"])
        if name not in self.decided:
            self.decided.add(name)
            until = None if data.get("until") is None else milliseconds(data["until"])
            if until is not None and until <= at:
                return
            self.orders.setdefault(name[:2], []).append((at, data["action"], data["entitlement"], until))

    def transferred(self, data, at):
        chain = self.chain(data["environment"], data["originalTransactionId"])
        owner, _ = chain.owner()
        if owner is not None and owner != data["account"]:
            return
        if data["orderId"] not in chain.orders:
            chain.orders.add(data["orderId"])
            named = chain.named()
            chain.transfer = (data["toAccount"], at, named.token if named else None)

    def credit_spend_requested(self, data, at):
        """An idempotency key has one answer; a balance is never spent below zero (docs/access.md, "Credits")."""
        spends = self.spends.setdefault((data["environment"], data["account"]), {})
        if data["idempotencyKey"] not in spends:
            has = self.balances(data["environment"], data["account"]).get(data["unit"], 0)
            spends[data["idempotencyKey"]] = (data["unit"], data["amount"] if has >= data["amount"] else 0)

    def answer(self):
        """Permits to finish: docs/access.md, "Permits"."""
        for name, (chain, statement) in list(self.open.items()):
            permit = self.permit(name[1], chain, statement, had=name not in self.permits and (
                chain.environment, name[1], chain.original, chain.name(statement)) in self.had)
            self.permits[name] = permit
            if permit[2] == "not-begun":
                self.waited.add(name)
            if permit[0] == "finishable":
                del self.open[name]

    def permit(self, account, chain, reported, had):
        if account not in chain.holders():
            return ("finishable", "none", "another-account")
        name = chain.name(reported)
        statement = newest([one for one in chain.transactions if chain.name(one) == name])
        product = self.catalogue.product(statement)
        if not chain.left(statement, product):
            return ("finishable", "none", "revoked")
        if product is None:
            return ("pending", "none", "unknown-product")
        granted = ("finishable",) + (("already-granted",) * 2 if had else ("granted",) * 2)
        if statement.type == CONSUMABLE:
            return granted
        if product["type"] == "non-renewing":
            held = self.held(chain.environment, account)
            stretches = [
                (entitlement, stretch) for entitlement in product["entitlements"]
                for one, stretch in self.seasons(held, entitlement) if one is statement]
        else:
            stretches = [(entitlement, stretch) for entitlement, other, stretch in chain.stretches(self.catalogue)
                         if other == name]
        orders = self.orders.get((chain.environment, account), [])
        cut = [(entitlement, one) for entitlement, stretch in stretches
               for one in stopped([stretch], orders, entitlement) if one.start < one.end]
        if not cut or all(one.end <= self.clock for _, one in cut):
            ended = all(one.revoked for _, one in cut)
            return ("finishable", "none", "revoked" if ended else "expired")
        # What follows on what the account may use already is granted as safely as that is.
        access = self.access(chain.environment, account, self.clock, revoked=False)
        begins = [one.start <= self.clock or entitlement in access and one.start <= (access[entitlement] or FOREVER)
                  for entitlement, one in cut if one.end > self.clock]
        return granted if any(begins) else ("pending", "none", "not-begun")

    # MARK: answers

    def accounts(self):
        """Every account that holds, spends or was given something."""
        accounts = set(self.orders) | set(self.spends)
        for (environment, _), chain in self.chains.items():
            accounts |= {(environment, holder) for holder in chain.holders()}
        return accounts

    def held(self, environment, account):
        return [
            chain for (where, _), chain in self.chains.items()
            if where == environment and account in chain.holders()]

    def balances(self, environment, account):
        balances = {}
        for (where, _), chain in self.chains.items():
            # Credits are the owner's alone.
            if where == environment and chain.owner()[0] == account:
                for _, unit, left in chain.credits(self.catalogue):
                    balances[unit] = balances.get(unit, 0) + left
        for unit, amount in self.spends.get((environment, account), {}).values():
            balances[unit] = balances.get(unit, 0) - amount
        return balances

    def stretches(self, environment, account):
        """Entitlement -> stretches. The entitlement is the union over all of them."""
        stretches = {}
        chains = self.held(environment, account)
        for chain in chains:
            for entitlement, _, stretch in chain.stretches(self.catalogue):
                stretches.setdefault(entitlement, []).append(stretch)
        for entitlement in {
            name for product in self.catalogue.products.values() if product["type"] == "non-renewing"
            for name in product["entitlements"]
        }:
            stretches.setdefault(entitlement, []).extend(stretch for _, stretch in self.seasons(chains, entitlement))
        for at, kind, entitlement, until in self.orders.get((environment, account), []):
            known = stretches.setdefault(entitlement, [])
            if kind == "grant":
                known.append(Stretch(at, FOREVER if until is None else until))
            else:
                stretches[entitlement] = stopped(known, [(at, kind, entitlement, until)], entitlement)
        return stretches

    def seasons(self, chains, entitlement):
        """storekit/product/producttype/nonrenewable: how long it lasts is for the developer to say. docs/access.md: one
        follows the other, and a refunded one has used up what lay before its refund."""
        bought = []
        for chain in chains:
            for _, statement, product in chain.purchases(self.catalogue):
                if product and product["type"] == "non-renewing" and entitlement in product["entitlements"]:
                    date = statement.originalPurchaseDate or statement.purchaseDate
                    bought.append((date, statement, product))
        cursor = -FOREVER
        for date, statement, product in sorted(bought, key=lambda one: one[0]):
            start = max(date, cursor)
            whole = Stretch(start, start + length(product["duration"]) * int(statement.quantity or 1))
            stretch = revoke(whole, statement)
            cursor = max(start, stretch.end)
            yield statement, stretch

    def access(self, environment, account, instant, revoked=True):
        """Entitlement -> when access ends as things stand, over all that follows without a gap; None: never. With or without
        what was revoked but for a date that is still to come."""
        active = {}
        for entitlement, stretches in self.stretches(environment, account).items():
            stretches = [one for one in stretches if one.start < one.end and (revoked or not one.revoked)]
            end = max((one.end for one in stretches if one.start <= instant < one.end), default=None)
            if end is None:
                continue
            while True:
                further = max((one.end for one in stretches if one.start <= end), default=end)
                if further <= end:
                    break
                end = further
            active[entitlement] = None if end == FOREVER else end
        return active


def milliseconds(text):
    """Of an RFC 3339 date in UTC."""
    import datetime

    date = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round((date - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) / datetime.timedelta(milliseconds=1))
