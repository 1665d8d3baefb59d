"""The cases that everybody agrees about, by hand: the model is held to them before it judges anybody."""

import itertools

import model

A, B = "aaaaaaaa-0000-4000-8000-00000000000a", "bbbbbbbb-0000-4000-8000-00000000000b"
CATALOGUE = model.Catalogue({"products": [
    {"id": "coins", "type": "consumable", "credits": {"unit": "coins", "amount": 100}},
    {"id": "pro", "type": "non-consumable", "entitlements": ["pro"]},
    {"id": "gold", "type": "auto-renewable", "entitlements": ["gold"]},
    {"id": "season", "type": "non-renewing", "duration": "P1D", "entitlements": ["season"]},
]})
TYPES = {"coins": "Consumable", "pro": "Non-Consumable", "gold": "Auto-Renewable Subscription",
         "season": "Non-Renewing Subscription"}
DAY = model.DAY


def sale(product, signed, transaction="1", by=None, restored=False, renewal=None, at=None, original="1", **fields):
    """A verified statement: reported by an account, or else in a notification."""
    payload = {"transactionId": transaction, "originalTransactionId": original, "productId": product,
               "type": TYPES[product], "signedDate": signed, "purchaseDate": 1, "originalPurchaseDate": 1, **fields}
    digest = repr(sorted(payload.items()))
    source = "client" if by else "notification"
    parts = [{"kind": "transaction", "payload": payload, "digest": digest, "source": source}]
    if renewal:
        parts.append({"kind": "renewal-info", "digest": repr(renewal), "source": source,
                      "payload": {"originalTransactionId": original, **renewal}})
    kind = ("payment.restored" if restored else "payment.purchased") if by else "store.notified"
    return {"at": signed if at is None else at, "type": "purchase.verified", "data": {
        "environment": "Production", "proof": digest, "parts": parts, "report": {"type": kind, "account": by}}}


def fact(name, at=50, **data):
    return {"at": at, "type": "fact.noted", "data": {"fact": name, "data": {"environment": "Production", **data}}}


def spend(key, amount, unit="coins"):
    return fact("credit.spend.requested", account=A, unit=unit, amount=amount, idempotencyKey=key)


def judge(*arrivals, policy="keep"):
    return model.Model({"policy": policy, "arrivals": list(arrivals)}, CATALOGUE)


def access(arrivals, at, account=A, **settings):
    return judge(*arrivals, **settings).access("Production", account, at)


def coins(*arrivals, account=A, **settings):
    return judge(*arrivals, **settings).balances("Production", account).get("coins", 0)


def permit(arrival, *before, account=A, **settings):
    return judge(*before, arrival, **settings).permits["Production", account, arrival["data"]["proof"]]


def check():
    # C19: a renewal, a refund, and auto-renew off and on again, in every order.
    period = {"purchaseDate": 900, "expiresDate": 9000, "appAccountToken": A, "webOrderLineItemId": "1"}
    chain = [sale("gold", 1000, **period), sale("gold", 2000, revocationDate=1990, **period)]
    chain += [sale("gold", at, revocationDate=1990, renewal={"signedDate": at, "autoRenewStatus": status}, **period)
              for at, status in ((3000, 0), (4000, 1))]
    for order in itertools.permutations(chain):
        assert access(order, 1989) == {"gold": 1990} and access(order, 1990) == {}, order
    # ... and the end of one period, told after the next one began.
    second = sale("gold", 5000, "2", purchaseDate=5000, expiresDate=9000, appAccountToken=A)
    ended = sale("gold", 5001, purchaseDate=1000, expiresDate=5000, appAccountToken=A)
    for order in ([second, ended], [ended, second]):
        assert access(order, 4999) == access(order, 5000) == {"gold": 9000} and access(order, 9000) == {}
    # C23: a refund of a transaction that was seen, whichever comes first.
    bought, refunded = sale("pro", 10, appAccountToken=A), sale("pro", 30, revocationDate=25, appAccountToken=A)
    assert access([bought], 26) == {"pro": None}
    assert access([bought, refunded], 26) == access([refunded, bought], 26) == {}
    assert access([refunded, sale("pro", 50, appAccountToken=A)], 60) == {"pro": None}, "a refund that was reversed"
    # C24: grace, without it, and recovery.
    failed = {"purchaseDate": 100, "expiresDate": 1000, "appAccountToken": A}
    grace = sale("gold", 1000, renewal={"signedDate": 1000, "gracePeriodExpiresDate": 2000}, **failed)
    for at, right in ((999, {"gold": 2000}), (1500, {"gold": 2000}), (1999, {"gold": 2000}), (2000, {})):
        assert access([grace], at) == right
    lapsed = sale("gold", 1000, renewal={"signedDate": 1000}, **failed)
    assert access([lapsed], 999) == {"gold": 1000} and access([lapsed], 1000) == {}
    recovered = sale("gold", 1800, "2", purchaseDate=1800, expiresDate=4800, appAccountToken=A)
    assert access([grace, recovered], 1900) == {"gold": 4800}
    # C26: seasons, refunded and not; and bought again after a refund.
    assert access([sale("season", 5, appAccountToken=A, quantity=2)], 5) == {"season": 1 + 2 * DAY}
    two = [sale("season", 5, str(n), original=str(n), originalPurchaseDate=n, appAccountToken=A) for n in (1, 2)]
    assert access(two, 5) == {"season": 1 + 2 * DAY}
    assert access([refunded, sale("pro", 50, "2", original="2", originalPurchaseDate=50, appAccountToken=A)], 60)
    # C29: tokens and their case, none, malformed ones, and a changed one.
    assert access([sale("pro", 5, appAccountToken=A.upper())], 9) == {"pro": None}
    for none in (None, "user-123", model.NO_UUID):
        assert access([sale("pro", 5, appAccountToken=none)], 9) == {}
        assert access([sale("pro", 5, by=B, appAccountToken=none)], 9, B) == {"pro": None}
    assert access([sale("pro", 5, by=B, appAccountToken=A)], 9, B) == {}
    moved = [sale("pro", 5, appAccountToken=A), sale("pro", 6, appAccountToken=B)]
    for order in (moved, moved[::-1]):
        assert access(order, 9) == {} and access(order, 9, B) == {"pro": None}
    # C30: one consumable, two accounts, under every policy.
    first, again = sale("coins", 5, by=A), sale("coins", 5, by=B, restored=True)
    for policy in ("keep", "transfer", "share"):
        assert (coins(first, again, policy=policy), coins(first, again, account=B, policy=policy)) == (100, 0), policy
        assert permit(again, first, account=B, policy=policy) == ("finishable", "none", "another-account")
    mine, theirs = sale("pro", 5, by=A), sale("pro", 5, by=B, restored=True)
    for policy, right in (("keep", [1, 0]), ("transfer", [0, 1]), ("share", [1, 1])):
        assert [len(access([mine, theirs], 9, account, policy=policy)) for account in (A, B)] == right, policy
    named = [sale("pro", 5, by=A, appAccountToken=A), sale("pro", 5, by=B, restored=True, appAccountToken=A)]
    assert access(named, 9, B, policy="share") == {}, "what a token binds is not shared"
    # C31: quantity; two transactions.
    assert coins(sale("coins", 5, by=A, quantity=3)) == 300
    assert coins(first, sale("coins", 5, "2", original="2", by=A)) == 200
    # C32: refunds of spent credits.
    back, reversed_ = sale("coins", 60, revocationDate=60), sale("coins", 70)
    assert coins(first, spend("k", 80)) == coins(first, spend("k", 80), spend("k", 80)) == 20
    assert coins(first, spend("k", 80, "gems"), spend("k", 80)) == coins(first, spend("k", 120), spend("k", 20)) == 100
    assert coins(first, spend("k", 80), back, back) == -80
    assert coins(first, spend("k", 80), back, reversed_) == 20
    assert coins(first, back, spend("k", 1)) == coins(back, first) == 0
    third = {"revocationDate": 60, "revocationPercentage": 33_333}
    assert coins(sale("coins", 5, by=A, quantity=3), sale("coins", 60, quantity=3, **third)) == 200
    assert permit(sale("coins", 60, by=A, quantity=3, **third))[:2] == ("finishable", "granted")
    # C35: the same again, and what grants nothing by rule.
    assert permit(first) == ("finishable", "granted", "granted")
    assert permit(sale("coins", 6, by=A), first) == ("finishable", "already-granted", "already-granted")
    assert permit(sale("pro", 30, by=A, revocationDate=25)) == ("finishable", "none", "revoked")
    assert permit(sale("gold", 5, by=A, at=5000, **{**failed, "appAccountToken": None}))[2] == "expired"
    assert permit(sale("pro", 5, by=A, at=5, originalPurchaseDate=9))[0] == "pending"
    # Seats: the purchaser keeps access until every transaction of the period is refunded.
    seats = {"purchaseDate": 100, "expiresDate": 1000, "appAccountToken": A, "multiSeatInfo": {}}
    base, more = sale("gold", 100, **seats), sale("gold", 200, "2", **{**seats, "purchaseDate": 200})
    gone = [sale("gold", 300, "2", revocationDate=300, **{**seats, "purchaseDate": 200}),
            sale("gold", 400, revocationDate=400, **seats)]
    assert access([base, more, gone[0]], 350) == {"gold": 1000}
    assert access([base, more, *gone], 450) == {}


if __name__ == "__main__":
    check()
