"""Signed tokens, good ones and ones with one thing wrong: every header field, every claim, every certificate field, every byte."""

import base64
import json
import random
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives import hashes

from certificates import (
    AUTHORITY_KEY, BASIC_CONSTRAINTS, EXTENDED_KEY_USAGE, INTERMEDIATE_MARKER, KEY_USAGE, LEAF_MARKER, NAME_CONSTRAINTS,
    POLICIES, SIGN_CERTIFICATES, SIGN_DATA, SUBJECT_KEY, Chain, ca_constraints, derived_key, integer, key_id, name, oid,
    public, sequence, time, tlv,
)

BUNDLE, APPLE_ID = "com.example.app", 1234567890
SIGNED = 1764460800000  # 2025-11-30, within every chain that is good
ABSENT = object()
B64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@dataclass(frozen=True)
class Case:
    id: str
    # What was done to the token, as docs/differential.md calls it.
    change: str
    kind: str
    environment: str
    token: str
    root: str = "root.der"
    bundle: str = BUNDLE


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def plain(der):
    return base64.b64encode(der).decode()


def dumps(value):
    return json.dumps(value, separators=(",", ":")).encode()


def sign(header, payload, key):
    """Signs header and payload as they are, bytes or JSON."""
    header, payload = (part if isinstance(part, bytes) else dumps(part) for part in (header, payload))
    signed = f"{base64url(header)}.{base64url(payload)}"
    digest, size = (hashes.SHA384(), 48) if key.curve.name == "secp384r1" else (hashes.SHA256(), 32)
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(digest, deterministic_signing=True)))
    return f"{signed}.{base64url(r.to_bytes(size, 'big') + s.to_bytes(size, 'big'))}"


def payloads(environment):
    """A full payload of each kind, by name: the kind and what is signed."""
    transaction = {
        "transactionId": "2000000912345702", "originalTransactionId": "2000000912345601",
        "webOrderLineItemId": "2000000098765402", "bundleId": BUNDLE, "productId": "com.example.gold",
        "subscriptionGroupIdentifier": "21412345", "purchaseDate": SIGNED - 1000,
        "originalPurchaseDate": SIGNED - 1000, "expiresDate": SIGNED + 86400000, "quantity": 1,
        "type": "Auto-Renewable Subscription", "appAccountToken": "7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11",
        "inAppOwnershipType": "PURCHASED", "signedDate": SIGNED, "revocationReason": 0, "revocationDate": SIGNED - 10,
        "revocationType": "REFUND_PRORATED", "revocationPercentage": 50000, "isUpgraded": False, "offerType": 1,
        "offerIdentifier": "o", "environment": environment, "storefront": "DEU", "storefrontId": "143443",
        "transactionReason": "PURCHASE", "currency": "EUR", "price": 9990, "offerDiscountType": "FREE_TRIAL",
        "appTransactionId": "71134", "offerPeriod": "P1M", "billingPlanType": "MONTHLY",
        "commitmentInfo": {"billingPeriodNumber": 1},
    }
    renewal = {
        "originalTransactionId": "2000000912345601", "autoRenewProductId": "com.example.gold",
        "productId": "com.example.gold", "autoRenewStatus": 1, "signedDate": SIGNED, "environment": environment,
        "recentSubscriptionStartDate": SIGNED - 1000, "renewalDate": SIGNED + 86400000, "expirationIntent": 1,
        "isInBillingRetryPeriod": False, "gracePeriodExpiresDate": SIGNED + 1, "priceIncreaseStatus": 0,
        "offerType": 1, "offerIdentifier": "o", "currency": "EUR", "renewalPrice": 9990,
        "offerDiscountType": "FREE_TRIAL", "eligibleWinBackOfferIds": ["w"], "appTransactionId": "71134",
        "offerPeriod": "P1M", "appAccountToken": "7f9c24e5-1c7a-4f0e-9a64-0d6c3b0c2f11",
        "renewalBillingPlanType": "MONTHLY",
    }
    app = {
        "receiptType": environment, "appAppleId": APPLE_ID, "bundleId": BUNDLE, "applicationVersion": "1",
        "versionExternalIdentifier": 5, "receiptCreationDate": SIGNED, "originalPurchaseDate": SIGNED - 1000,
        "originalApplicationVersion": "1", "deviceVerification": "dmVyaWZ5", "preorderDate": SIGNED - 2000,
        "deviceVerificationNonce": "48ccfa42-7431-4f22-9908-7e88983e105a", "appTransactionId": "71134",
        "originalPlatform": "iOS",
    }
    place = {"appAppleId": APPLE_ID, "bundleId": BUNDLE, "environment": environment}

    def notification(member, body, kind="DID_RENEW", **more):
        return {
            "notificationType": kind, **more, "notificationUUID": "002e14d5-51f5-4503-b5a8-c3a1af68eb20",
            "version": "2.0", "signedDate": SIGNED, member: body,
        }

    token = {
        "externalPurchaseId": ("SANDBOX_" if environment == "Sandbox" else "") + "b2158121",
        "tokenCreationDate": SIGNED, "appAppleId": APPLE_ID, "bundleId": BUNDLE,
    }
    return {
        "transaction": ("transaction", transaction),
        "renewal-info": ("renewal-info", renewal),
        "app-transaction": ("app-transaction", app),
        "data": ("notification", notification("data", {**place, "bundleVersion": "42", "status": 1})),
        "summary": ("notification", notification(
            "summary", {**place, "requestIdentifier": "r", "productId": "p", "succeededCount": 5, "failedCount": 0,
                        "storefrontCountryCodes": ["DEU"]}, "RENEWAL_EXTENSION", subtype="SUMMARY")),
        "appData": ("notification", notification("appData", place, "RESCIND_CONSENT")),
        "externalPurchaseToken": ("notification", notification(
            "externalPurchaseToken", token, "EXTERNAL_PURCHASE_TOKEN", subtype="UNREPORTED")),
    }


class Mutations:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.chain = Chain()
        self.x5c = self.chain.x5c()
        self.cases = []
        self.transaction = payloads("Sandbox")["transaction"][1]

    def header(self, x5c=None):
        return {"alg": "ES256", "x5c": [plain(der) for der in (self.x5c if x5c is None else x5c)]}

    def add(self, change, token, kind="transaction", environment="Sandbox"):
        self.cases.append(Case(f"{len(self.cases)} {change}", change, kind, environment, token))

    def published(self, folder):
        """Apple's own examples, under Apple's own test roots."""
        for file, kind in (
            ("transactionInfo", "transaction"), ("renewalInfo", "renewal-info"), ("testNotification", "notification"),
            ("wrongBundleId", "transaction"), ("missingX5CHeaderClaim", "transaction"),
        ):
            token = (folder / "jws" / f"{file}.jws").read_text().strip()
            self.cases.append(Case(
                f"published {file}", f"published: {file}", kind, "Sandbox", token, "mock-root.der", "com.example"))

    def all(self):
        for environment in ("Sandbox", "Production"):
            self.claims(environment)
        self.dates()
        self.payload_forms()
        self.headers()
        self.nested()
        self.compact_forms()
        self.certificate_fields()
        self.certificate_bytes()
        self.bytes()
        return self.cases

    # What was signed

    def claims(self, environment):
        for title, (kind, payload) in payloads(environment).items():
            whole = sign(self.header(), payload, self.chain.leaf_key)
            self.add("nothing", whole, kind, environment)
            paths = [(member,) for member in payload]
            for member, body in payload.items():
                paths += [(member, inner) for inner in body] if isinstance(body, dict) and kind == "notification" else []
            for path in paths:
                for how, value in (
                    ("left out", ABSENT), ("null", None), ("another text", "another"), ("empty text", ""),
                    ("a number", 7), ("a negative number", -1), ("a fraction", 1.5), ("true", True), ("an array", []),
                    ("an object", {}), ("a huge number", 10**30), ("twice as long", None),
                ):
                    changed = json.loads(dumps(payload))
                    place = changed
                    for part in path[:-1]:
                        place = place[part]
                    if how == "twice as long":
                        if not isinstance(place[path[-1]], str):
                            continue
                        value = place[path[-1]] * 2
                    if value is ABSENT:
                        del place[path[-1]]
                    else:
                        place[path[-1]] = value
                    change = f"claim {how}" if how in ("left out", "null") else "claim of another kind or value"
                    self.add(change, sign(self.header(), changed, self.chain.leaf_key), kind, environment)
            for other_title, (other_kind, other) in payloads(environment).items():
                if other_kind != kind:
                    token = sign(self.header(), other, self.chain.leaf_key)
                    self.add("another kind of payload", token, kind, environment)
            elsewhere = payloads("Production" if environment == "Sandbox" else "Sandbox")[title][1]
            self.add("another environment", sign(self.header(), elsewhere, self.chain.leaf_key), kind, environment)
            self.add(
                "an unknown member", sign(self.header(), {**payload, "novel": {"x": [1]}}, self.chain.leaf_key), kind,
                environment)
        for wrong in ("production", "PRODUCTION", "Xcode", "LocalTesting", " Sandbox"):
            self.add(
                "an environment that is none",
                sign(self.header(), {**self.transaction, "environment": wrong}, self.chain.leaf_key))
        for other in (1, 1234567891, "1234567890"):
            kind, payload = payloads("Production")["data"]
            payload["data"]["appAppleId"] = other
            self.add("another app's number", sign(self.header(), payload, self.chain.leaf_key), kind, "Production")

    def dates(self):
        chain = Chain("short lived")
        chain.leaf.not_before, chain.leaf.not_after = time("20250101000000Z"), time("20250601000000Z")
        chain.root, chain.root_key = self.chain.root, self.chain.root_key
        chain.intermediate.issuer = self.chain.root.subject
        chain.intermediate_signer = self.chain.root_key
        chain.intermediate.extensions = [
            part for part in chain.intermediate.extensions if part[0] != AUTHORITY_KEY
        ] + [(AUTHORITY_KEY, sequence(tlv(0x80, key_id(self.chain.root_key))), False)]
        first, last = 1735689600000, 1748736000000
        header = self.header(chain.x5c())
        for change, date in (
            ("signed within a short life", first + 1), ("signed in the certificate's first second", first),
            ("signed in the certificate's last second", last), ("signed in the certificate's last second", last + 999),
            ("signed just before the certificate's life", first - 1), ("signed just after the certificate's life", last + 1000),
            ("signed a minute before the certificate's life", first - 60001),
            ("signed a minute after the certificate's life", last + 61000),
            ("signed a year after the certificate's life", last + 31536000000),
        ):
            self.add(change, sign(header, {**self.transaction, "signedDate": date}, chain.leaf_key))
        for change, date in (
            ("signed date with a fraction", SIGNED + 0.25), ("signed date 0", 0), ("signed date before 1970", -1000),
            ("signed date as text", str(SIGNED)), ("signed date in a year's time", 1830000000000),
            ("signed date beyond all certificates", 4000000000000), ("signed date out of all bounds", 10**18),
        ):
            self.add(change, sign(self.header(), {**self.transaction, "signedDate": date}, self.chain.leaf_key))

    def payload_forms(self):
        body = dumps(self.transaction)
        key = self.chain.leaf_key
        for change, payload in (
            ("payload with a member twice", body[:-1] + b',"bundleId":"com.example.other"}'),
            ("payload with a member twice", b'{"bundleId":"com.example.other",' + body[1:]),
            ("payload with white space", json.dumps(self.transaction, indent=1).encode()),
            ("payload with a byte order mark", b"\xef\xbb\xbf" + body),
            ("payload with something behind it", body + b"x"), ("payload with a line break behind it", body + b"\n"),
            ("payload that is no object", b"[]"), ("payload that is no object", b"null"), ("payload that is no object", b'"x"'),
            ("payload that is no object", b"7"), ("payload that is no JSON", b"{"), ("payload that is no JSON", b"\x00"),
            ("payload with a comment", body[:-1] + b"/**/}"), ("payload with a comma too many", body[:-1] + b",}"),
            ("payload with NaN", body[:-1] + b',"x":NaN}'), ("payload with bytes that are no UTF-8", body[:-1] + b',"x":"\xff"}'),
            ("payload with half a surrogate pair", body[:-1] + b',"x":"\\ud800"}'),
            ("payload with a control character", body[:-1] + b',"x":"\x01"}'),
            ("payload nested deeply", body[:-1] + b',"x":' + b"[" * 3000 + b"]" * 3000 + b"}"),
            ("payload with escapes", body.replace(b'"bundleId"', b'"bundle\\u0049d"')),
        ):
            self.add(change, sign(self.header(), payload, key))

    def nested(self):
        """Apple's libraries leave the proofs inside a notification to their caller; ours are judged with it."""
        forged = sign(self.header(), self.transaction, derived_key("forger"))
        good = sign(self.header(), self.transaction, self.chain.leaf_key)
        elsewhere = sign(self.header(), payloads("Production")["transaction"][1], self.chain.leaf_key)
        another = sign(self.header(), {**self.transaction, "bundleId": "com.example.two"}, self.chain.leaf_key)
        renewal = payloads("Sandbox")["renewal-info"][1]
        other = sign(self.header(), {**renewal, "originalTransactionId": "1"}, self.chain.leaf_key)
        for change, data in (
            ("a good proof inside", {"signedTransactionInfo": good}),
            ("a forged proof inside", {"signedTransactionInfo": forged}),
            ("no proof where one belongs", {"signedTransactionInfo": "x"}),
            ("a proof of another environment inside", {"signedTransactionInfo": elsewhere}),
            ("a proof of another app inside", {"signedTransactionInfo": another}),
            ("a proof of another kind inside", {"signedRenewalInfo": good}),
            ("proofs of two purchases inside", {"signedTransactionInfo": good, "signedRenewalInfo": other}),
        ):
            kind, payload = payloads("Sandbox")["data"]
            payload["data"].update(data)
            self.add(change, sign(self.header(), payload, self.chain.leaf_key), kind)
        for second in ("summary", "appData"):
            kind, payload = payloads("Sandbox")["data"]
            payload[second] = {"appAppleId": APPLE_ID, "bundleId": "com.example.other", "environment": "Sandbox"}
            self.add("a second body of another app", sign(self.header(), payload, self.chain.leaf_key), kind)

    # The header

    def headers(self):
        key, payload, good = self.chain.leaf_key, self.transaction, self.header()
        leaf, intermediate, root = good["x5c"]
        foreign = Chain("foreign")
        foreign_x5c = [plain(der) for der in foreign.x5c()]
        p384 = derived_key("p384", ec.SECP384R1())
        for algorithm in ("none", "None", "HS256", "ES384", "RS256", "PS256", "es256", "ES256 ", "", None, 256, ["ES256"], ABSENT):
            header = {**good, "alg": algorithm}
            if algorithm is ABSENT:
                del header["alg"]
            self.add("header: another algorithm", sign(header, payload, key))
        unsigned = f"{base64url(dumps({**good, 'alg': 'none'}))}.{base64url(dumps(payload))}."
        self.add("header: another algorithm", unsigned)
        for change, x5c in (
            ("header: no chain", ABSENT), ("header: no chain", None), ("header: no chain", []),
            ("header: chain is no array", leaf), ("header: chain is no array", {"0": leaf}), ("header: chain is no array", 3),
            ("header: chain of another length", [leaf]), ("header: chain of another length", [leaf, intermediate]),
            ("header: chain of another length", [leaf, root]),
            ("header: chain of another length", [leaf, intermediate, intermediate, root]),
            ("header: chain of another length", [leaf, intermediate, root, root]),
            ("header: chain in another order", [root, intermediate, leaf]),
            ("header: chain in another order", [intermediate, leaf, root]),
            ("header: chain in another order", [leaf, root, intermediate]),
            ("header: one certificate thrice", [leaf, leaf, leaf]), ("header: one certificate thrice", [root, root, root]),
            ("header: a foreign chain", foreign_x5c),
            ("header: another root than ours", [leaf, intermediate, foreign_x5c[2]]),
            ("header: a root that is no certificate", [leaf, intermediate, ""]),
            ("header: a root that is no certificate", [leaf, intermediate, "AAAA"]),
            ("header: a root that is no certificate", [leaf, intermediate, "?"]),
            ("header: a root that is no text", [leaf, intermediate, None]),
            ("header: a root that is no text", [leaf, intermediate, 7]),
            ("header: an intermediate of a foreign chain", [leaf, foreign_x5c[1], root]),
            ("header: a certificate that is none", ["", intermediate, root]),
            ("header: a certificate that is none", [leaf, "AAAA", root]),
            ("header: a certificate that is no text", [1, intermediate, root]),
            ("header: certificate in base64url", [leaf.replace("+", "-").replace("/", "_"), intermediate, root]),
            ("header: certificate without its padding", [leaf.rstrip("="), intermediate.rstrip("="), root.rstrip("=")]),
            ("header: certificate with a line break", [leaf[:64] + "\n" + leaf[64:], intermediate, root]),
            ("header: certificate with white space", [leaf + " ", intermediate, root]),
            ("header: certificate as PEM", [
                f"-----BEGIN CERTIFICATE-----\n{leaf}\n-----END CERTIFICATE-----\n", intermediate, root]),
            ("header: certificate with a byte behind it", [plain(self.x5c[0] + b"\x00"), intermediate, root]),
        ):
            header = {**good, "x5c": x5c}
            if x5c is ABSENT:
                del header["x5c"]
            self.add(change, sign(header, payload, key))
        for change, more in (
            ("header: a further member", {"typ": "JWT"}), ("header: a further member", {"kid": "x"}),
            ("header: a further member", {"novel": [1]}), ("header: a further member", {"jwk": {"kty": "EC"}}),
            ("header: a further member", {"jku": "https://example.com"}), ("header: a further member", {"x5u": "https://example.com"}),
            ("header: a further member that is no text", {"kid": 7}),
            ("header: demands what nobody knows", {"crit": ["exp"], "exp": 1}),
            ("header: demands what nobody knows", {"crit": []}), ("header: demands what nobody knows", {"crit": ["b64"], "b64": False}),
            ("header: demands what nobody knows", {"crit": None}),
            ("header: says that the payload is not encoded", {"b64": False}),
        ):
            self.add(change, sign({**good, **more}, payload, key))
        body = dumps(good)
        for change, header in (
            ("header with a member twice", body[:-1] + b',"alg":"none"}'), ("header with a member twice", b'{"alg":"none",' + body[1:]),
            ("header with a member twice", body[:-1] + b',"x5c":[]}'), ("header that is no object", b"[]"),
            ("header that is no object", b"null"), ("header that is no JSON", b"{"),
            ("header with a byte order mark", b"\xef\xbb\xbf" + body), ("header with white space", json.dumps(good, indent=1).encode()),
            ("header with something behind it", body + b"x"),
        ):
            self.add(change, sign(header, payload, key))
        self.add("signed by another key", sign(good, payload, derived_key("another")))
        self.add("signed by another key", sign(good, payload, self.chain.intermediate_key))
        self.add("signed by another key", sign({**good, "alg": "ES384"}, payload, p384))

    # The compact form

    def compact_forms(self):
        token = sign(self.header(), self.transaction, self.chain.leaf_key)
        header, payload, signed = token.split(".")
        half = base64.urlsafe_b64decode(signed + "==")
        r, s = half[:32], half[32:]
        order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
        negated = (order - int.from_bytes(s, "big")).to_bytes(32, "big")
        for change, text in (
            ("form: two segments", f"{header}.{payload}"), ("form: four segments", token + ".x"), ("form: four segments", token + "."),
            ("form: empty", ""), ("form: one segment", header), ("form: an empty segment", f".{payload}.{signed}"),
            ("form: an empty segment", f"{header}..{signed}"), ("form: an empty segment", f"{header}.{payload}."),
            ("form: white space inside", f"{header}. {payload}.{signed}"),
            ("form: white space inside", f"{header[:20]}\t{header[20:]}.{payload}.{signed}"),
            ("form: white space before", " " + token), ("form: a line break before", "\n" + token),
            ("form: padding", f"{header}.{payload}.{signed}=="), ("form: padding", f"{header}=.{payload}.{signed}"),
            ("form: the other alphabet of base64", f"{header}.{payload}.{base64.b64encode(half).decode().rstrip('=')}"),
            ("form: detached payload", f"{header}..{signed}"),
            ("form: the other of two signatures", f"{header}.{payload}.{base64url(r + negated)}"),
            ("form: a signature of zeroes", f"{header}.{payload}.{base64url(bytes(64))}"),
            ("form: a signature of r alone", f"{header}.{payload}.{base64url(r)}"),
            ("form: a signature with more behind it", f"{header}.{payload}.{base64url(half + bytes(1))}"),
            ("form: a signature in DER", f"{header}.{payload}.{base64url(sequence(integer(int.from_bytes(r, 'big')), integer(int.from_bytes(s, 'big'))))}"),
            ("form: r and s exchanged", f"{header}.{payload}.{base64url(s + r)}"),
            ("form: text that is no ASCII", "é" + token), ("form: bits beyond the last byte", f"{header}.{payload}.{self.loose(signed)}"),
        ):
            self.add(change, text)

    @staticmethod
    def loose(segment):
        """The same bytes in another spelling: the last character's unused bits set."""
        return segment[:-1] + B64URL[B64URL.index(segment[-1]) | 1]

    # The certificates

    def certificate_fields(self):
        def built(change, body, mends_anchor=True):
            chain = Chain()
            signer = body(chain) or chain.leaf_key
            self.add(f"certificate: {change}", sign(self.header(chain.x5c()), self.transaction, signer))

        def without(part, identifier):
            part.extensions = [one for one in part.extensions if one[0] != identifier]

        def replaced(part, identifier, value, critical=False):
            part.extensions = [
                (identifier, value, critical) if one[0] == identifier else one for one in part.extensions
            ]

        def setting(part, **fields):
            def body(chain):
                for field, value in fields.items():
                    setattr(getattr(chain, part), field, value)
            return body

        def editing(part, edit, *arguments):
            return lambda chain: edit(getattr(chain, part), *arguments)

        def appending(part, *extension):
            return lambda chain: getattr(chain, part).extensions.append(extension)

        for part, marker in (("leaf", LEAF_MARKER), ("intermediate", INTERMEDIATE_MARKER)):
            built(f"{part} without its marker", editing(part, without, marker))
            built(f"{part} with the other's marker", editing(part, lambda one: setattr(one, "extensions", [
                ({LEAF_MARKER: INTERMEDIATE_MARKER, INTERMEDIATE_MARKER: LEAF_MARKER}.get(identifier, identifier), *rest)
                for identifier, *rest in one.extensions])))
            built(f"{part} with a marker in two", appending(part, marker, b"\x05\x00", False))
            built(f"{part} with a critical marker", editing(part, replaced, marker, b"\x05\x00", True))
            built(f"{part} with text in its marker", editing(part, replaced, marker, b"\x0c\x01x"))
            built(f"{part} without an authority key identifier", editing(part, without, AUTHORITY_KEY))
            built(f"{part} without a subject key identifier", editing(part, without, SUBJECT_KEY))
            built(f"{part} with another authority key identifier", editing(
                part, replaced, AUTHORITY_KEY, sequence(tlv(0x80, b"x" * 20))))
            built(f"{part} with another subject key identifier", editing(part, replaced, SUBJECT_KEY, tlv(0x04, b"x" * 20)))
            built(f"{part} with a malformed extension", editing(part, replaced, SUBJECT_KEY, b"\x04\x7f"))
            built(f"{part} without key usage", editing(part, without, KEY_USAGE))
            built(f"{part} with an unknown critical extension", appending(part, "1.2.3.4", b"\x05\x00", True))
            built(f"{part} with an unknown extension", appending(part, "1.2.3.4", b"\x05\x00", False))
            built(f"{part} with policies", appending(part, POLICIES, sequence(sequence(oid("1.2.3"))), False))
            built(f"{part} with critical policies", appending(part, POLICIES, sequence(sequence(oid("1.2.3"))), True))
            built(f"{part} with an extended use for web servers", appending(
                part, EXTENDED_KEY_USAGE, sequence(oid("1.3.6.1.5.5.7.3.1")), False))
            built(f"{part} with a critical extended use", appending(
                part, EXTENDED_KEY_USAGE, sequence(oid("1.3.6.1.5.5.7.3.1")), True))
            built(f"{part} without extensions", setting(part, extensions=[]))
            built(f"{part} expired", setting(part, not_after=time("20250101000000Z")))
            built(f"{part} not valid yet", setting(part, not_before=time("20300101000000Z")))
            built(f"{part} valid backwards", setting(
                part, not_before=time("20440101000000Z"), not_after=time("20240101000000Z")))
            built(f"{part} with a date that is none", setting(part, not_after=tlv(0x17, b"251332000000Z")))
            built(f"{part} with four digits for an early year", setting(part, not_after=tlv(0x18, b"20450101000000Z")))
            built(f"{part} without seconds in a date", setting(part, not_after=tlv(0x17, b"4501010000Z")))
            built(f"{part} with an offset in a date", setting(part, not_after=tlv(0x17, b"450101000000+0100")))
            built(f"{part} of another issuer", setting(part, issuer=name("Another")))
            built(f"{part} without an issuer", setting(part, issuer=sequence()))
            built(f"{part} of an issuer in another spelling", setting(
                part, issuer=name("intermediate" if part == "leaf" else "root")))
            built(f"{part} of an issuer in another kind of text", setting(
                part, issuer=name("Intermediate" if part == "leaf" else "Root", 0x13)))
            built(f"{part} without a subject", setting(part, subject=sequence()))
            built(f"{part} of version 1", setting(part, version=b"", extensions=[]))
            built(f"{part} of version 1 with extensions", setting(part, version=b""))
            built(f"{part} of version 2 with extensions", setting(part, version=tlv(0xA0, integer(1))))
            built(f"{part} of version 7", setting(part, version=tlv(0xA0, integer(6))))
            built(f"{part} with the serial number 0", setting(part, serial=integer(0)))
            built(f"{part} with a negative serial number", setting(part, serial=integer(-5)))
            built(f"{part} with a serial number of 30 bytes", setting(part, serial=integer(1 << 239)))
            built(f"{part} with unique identifiers", setting(part, ids=tlv(0x81, b"\x00\x01")))
            for digest in ("sha1", "sha384", "sha512"):
                built(f"{part} signed over {digest.upper()}", setting(part, digest=digest))
            built(f"{part} with two algorithms", setting(part, inner_algorithm=sequence(oid("1.2.840.10045.4.3.3"))))
            built(f"{part} with parameters for its algorithm", setting(
                part, inner_algorithm=sequence(oid("1.2.840.10045.4.3.2"), b"\x05\x00"),
                outer_algorithm=sequence(oid("1.2.840.10045.4.3.2"), b"\x05\x00")))
            built(f"{part} signed by itself", lambda chain, part=part: setattr(
                chain, f"{part}_signer", getattr(chain, f"{part}_key")))
            built(f"{part} signed by a stranger", lambda chain, part=part: setattr(
                chain, f"{part}_signer", derived_key("stranger")))
            built(f"{part} with key usage for nothing", editing(part, replaced, KEY_USAGE, b"\x03\x02\x07\x00", True))
            built(f"{part} without basic constraints", editing(part, without, BASIC_CONSTRAINTS))
            built(f"{part} with uncritical basic constraints", editing(
                part, replaced, BASIC_CONSTRAINTS, sequence() if part == "leaf" else ca_constraints(0)))
        built("intermediate that is no authority", editing("intermediate", replaced, BASIC_CONSTRAINTS, sequence(), True))
        built("intermediate that may not sign certificates", editing("intermediate", replaced, KEY_USAGE, SIGN_DATA, True))
        built("intermediate without a path length", editing(
            "intermediate", replaced, BASIC_CONSTRAINTS, ca_constraints(), True))
        built("intermediate with a negative path length", editing(
            "intermediate", replaced, BASIC_CONSTRAINTS, ca_constraints(-1), True))
        built("intermediate with name constraints", appending(
            "intermediate", NAME_CONSTRAINTS, sequence(tlv(0xA1, sequence(tlv(0x82, b"example.com")))), True))
        built("leaf that is an authority", editing("leaf", replaced, BASIC_CONSTRAINTS, ca_constraints(), True))
        built("leaf that may sign certificates only", editing("leaf", replaced, KEY_USAGE, SIGN_CERTIFICATES, True))

        def leaf_key(chain, key):
            chain.leaf.spki = public(key)
            without(chain.leaf, SUBJECT_KEY)
            return key

        built("leaf with a key on P-384", lambda chain: leaf_key(chain, derived_key("p384", ec.SECP384R1())))
        rsa_key = rsa.generate_private_key(65537, 2048)
        built("leaf with an RSA key", lambda chain: leaf_key(chain, rsa_key) and chain.leaf_key)
        built("leaf signed as a leaf by a leaf", lambda chain: self.under_a_leaf(chain))
        built("root that a stranger signed under our root's name and key", lambda chain: setattr(
            chain, "root_der", lambda: chain.root.signed(derived_key("stranger"))))
        built("root with other fields under our root's name and key", lambda chain: setattr(
            chain.root, "serial", integer(77)))
        built("root of our root's name with another key", lambda chain: setattr(
            chain.root, "spki", public(derived_key("stranger"))))

    @staticmethod
    def under_a_leaf(chain):
        """The leaf of one purchase as the authority over another leaf."""
        stranger = derived_key("under a leaf")
        chain.intermediate.extensions = [
            (BASIC_CONSTRAINTS, sequence(), True), (KEY_USAGE, SIGN_DATA, True), (LEAF_MARKER, b"\x05\x00", False)]
        chain.leaf.spki = public(stranger)
        return stranger

    def certificate_bytes(self):
        """Each byte of leaf and intermediate changed, the token signed all the same."""
        for index, part in ((0, "leaf"), (1, "intermediate")):
            for place in range(len(self.x5c[index])):
                changed = bytearray(self.x5c[index])
                changed[place] ^= 1 << self.random.randrange(8)
                x5c = list(self.x5c)
                x5c[index] = bytes(changed)
                self.add(f"a byte of the {part} changed", sign(self.header(x5c), self.transaction, self.chain.leaf_key))
        for place in range(0, len(self.x5c[2]), 5):
            changed = bytearray(self.x5c[2])
            changed[place] ^= 1 << self.random.randrange(8)
            self.add("a byte of the root changed", sign(
                self.header([*self.x5c[:2], bytes(changed)]), self.transaction, self.chain.leaf_key))

    # The bytes

    def bytes(self):
        """Each character of a token replaced by another, one taken out, one put in."""
        alphabet = B64URL + ".=+/ \n\tä\x00"
        token = sign(self.header(), self.transaction, self.chain.leaf_key)
        for place in range(len(token)):
            other = self.random.choice([one for one in alphabet if one != token[place]])
            self.add("a character replaced", token[:place] + other + token[place + 1:])
        for title, (kind, payload) in payloads("Sandbox").items():
            token = sign(self.header(), payload, self.chain.leaf_key)
            for _ in range(60):
                place = self.random.randrange(len(token))
                self.add("a character taken out", token[:place] + token[place + 1:], kind)
                place = self.random.randrange(len(token))
                self.add("a character put in", token[:place] + self.random.choice(alphabet) + token[place:], kind)
                self.add("the end cut off", token[:self.random.randrange(len(token))], kind)
