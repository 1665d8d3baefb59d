"""X.509 certificates written byte by byte, so that every field can be wrong: libraries for making them refuse to."""

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

LEAF_MARKER = "1.2.840.113635.100.6.11.1"
INTERMEDIATE_MARKER = "1.2.840.113635.100.6.2.1"
BASIC_CONSTRAINTS, KEY_USAGE = "2.5.29.19", "2.5.29.15"
SUBJECT_KEY, AUTHORITY_KEY = "2.5.29.14", "2.5.29.35"
EXTENDED_KEY_USAGE, NAME_CONSTRAINTS, POLICIES = "2.5.29.37", "2.5.29.30", "2.5.29.32"

ECDSA = {"sha1": "1.2.840.10045.4.1", "sha256": "1.2.840.10045.4.3.2", "sha384": "1.2.840.10045.4.3.3",
         "sha512": "1.2.840.10045.4.3.4"}
DIGESTS = {"sha1": hashes.SHA1(), "sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}
SIGN_CERTIFICATES, SIGN_DATA = b"\x03\x02\x01\x06", b"\x03\x02\x07\x80"


def tlv(tag, *parts):
    content = b"".join(parts)
    if len(content) < 128:
        return bytes([tag, len(content)]) + content
    size = (len(content).bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + len(content).to_bytes(size, "big") + content


def sequence(*parts):
    return tlv(0x30, *parts)


def integer(value):
    return tlv(0x02, value.to_bytes(max(1, (value.bit_length() + 8) // 8), "big", signed=True))


def oid(text):
    first, second, *rest = map(int, text.split("."))
    content = b""
    for number in [first * 40 + second, *rest]:
        septets = [number & 0x7F]
        while number := number >> 7:
            septets.append(0x80 | (number & 0x7F))
        content += bytes(reversed(septets))
    return tlv(0x06, content)


def name(text, tag=0x0C):
    return sequence(tlv(0x31, sequence(oid("2.5.4.3"), tlv(tag, text.encode()))))


def time(text):
    """`20250101000000Z`; the years to 2049 as X.509 wants them, in two digits."""
    return tlv(0x17, text[2:].encode()) if int(text[:4]) < 2050 else tlv(0x18, text.encode())


def extension(identifier, value, critical=False):
    return sequence(oid(identifier), tlv(0x01, b"\xff") if critical else b"", tlv(0x04, value))


def public(key):
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def key_id(key):
    digest = hashes.Hash(hashes.SHA1())
    digest.update(public(key)[-65:])
    return digest.finalize()


def derived_key(label, curve=ec.SECP256R1()):
    """A key of its own for each label, the same in each run."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(label.encode())
    return ec.derive_private_key(int.from_bytes(digest.finalize(), "big") >> 8, curve)


def signature(key, message, digest):
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(message, padding.PKCS1v15(), DIGESTS[digest])
    return key.sign(message, ec.ECDSA(DIGESTS[digest], deterministic_signing=digest != "sha1"))


class Certificate:
    """The fields of a certificate that is to be signed; changing one before `signed` makes it wrong."""

    def __init__(self, subject, issuer, key, extensions, serial=1):
        self.subject, self.issuer = name(subject), name(issuer)
        self.spki = public(key)
        self.serial = integer(serial)
        self.version = tlv(0xA0, integer(2))
        self.not_before, self.not_after = time("20240101000000Z"), time("20450101000000Z")
        self.extensions = extensions
        self.digest = "sha256"
        self.inner_algorithm = self.outer_algorithm = None
        self.ids = b""

    def signed(self, key):
        algorithm = sequence(oid(ECDSA[self.digest]))
        if isinstance(key, rsa.RSAPrivateKey):
            algorithm = sequence(oid("1.2.840.113549.1.1.11"), b"\x05\x00")
        listed = b"".join(extension(*part) for part in self.extensions)
        inner = sequence(
            self.version, self.serial, self.inner_algorithm or algorithm, self.issuer,
            sequence(self.not_before, self.not_after), self.subject, self.spki, self.ids,
            tlv(0xA3, sequence(listed)) if self.extensions else b"",
        )
        return sequence(
            inner, self.outer_algorithm or algorithm, tlv(0x03, b"\x00", signature(key, inner, self.digest))
        )


def ca_constraints(path_length=None):
    return sequence(tlv(0x01, b"\xff"), integer(path_length) if path_length is not None else b"")


class Chain:
    """Keys and certificate fields of a chain that everybody accepts. `x5c` signs what the fields are by then."""

    def __init__(self, label="apple's place"):
        self.root_key, self.intermediate_key, self.leaf_key = (
            derived_key(f"{label} {part}") for part in ("root", "intermediate", "leaf")
        )
        root_id, intermediate_id, leaf_id = map(key_id, (self.root_key, self.intermediate_key, self.leaf_key))

        def ids(own, issuer):
            return [(SUBJECT_KEY, tlv(0x04, own), False), (AUTHORITY_KEY, sequence(tlv(0x80, issuer)), False)]

        self.root = Certificate("Root", "Root", self.root_key, [
            (BASIC_CONSTRAINTS, ca_constraints(), True), (KEY_USAGE, SIGN_CERTIFICATES, True), *ids(root_id, root_id)])
        self.intermediate = Certificate("Intermediate", "Root", self.intermediate_key, [
            (BASIC_CONSTRAINTS, ca_constraints(0), True), (KEY_USAGE, SIGN_CERTIFICATES, True),
            *ids(intermediate_id, root_id), (INTERMEDIATE_MARKER, b"\x05\x00", False)], 2)
        self.leaf = Certificate("Leaf", "Intermediate", self.leaf_key, [
            (BASIC_CONSTRAINTS, sequence(), True), (KEY_USAGE, SIGN_DATA, True),
            *ids(leaf_id, intermediate_id), (LEAF_MARKER, b"\x05\x00", False)], 3)
        self.intermediate_signer, self.leaf_signer = self.root_key, self.intermediate_key

    def root_der(self):
        return self.root.signed(self.root_key)

    def x5c(self):
        return [self.leaf.signed(self.leaf_signer), self.intermediate.signed(self.intermediate_signer), self.root_der()]
