"""OpenSSL's command judges receipts that this program signs: what it takes and refuses, and what the content is."""

import base64
import json
import pathlib
import subprocess
import tempfile

from judging import purchases

RECEIPT = {
    "environment": "ProductionSandbox",
    "bundleId": "com.example.app",
    "receiptCreationDate": "2025-10-01T00:00:00Z",
    "inApp": [
        {
            "transactionId": "1000",
            "productId": "coins",
            "purchaseDate": "2025-09-30T00:00:00Z",
            "type": "Consumable",
        }
    ],
}
# The signature is wrong, or made under another root.
REFUSED = ["broken-signature", "changed-content", "foreign-root"]


def openssl(folder, receipt):
    """What OpenSSL says of a receipt under the folder's root, and the content that it took out."""
    (folder / "receipt").write_bytes(receipt)
    root = subprocess.run(
        ["openssl", "x509", "-inform", "DER", "-in", folder / "store/receipt-root.der"], capture_output=True, check=True
    ).stdout
    (folder / "root.pem").write_bytes(root)
    run = subprocess.run(
        ["openssl", "cms", "-verify", "-inform", "DER", "-binary", "-purpose", "any", "-in", folder / "receipt"]
        + ["-CAfile", folder / "root.pem", "-out", folder / "content"],
        capture_output=True,
    )
    return run.returncode == 0, (folder / "content").read_bytes() if run.returncode == 0 else b""


def ours(folder, text, status):
    answer = purchases(
        "verify", "--receipt", "-", "--anchor", folder / "store/receipt-root.der", input=text, status=status
    )
    return json.loads(answer)


def sign(folder, form, fault=None):
    words = ["appstore", "sign", "--kind", "app-receipt", "--form", form, "--dir", folder / "store"]
    return purchases(*words, *(["--fault", fault] if fault else []), input=json.dumps(RECEIPT).encode())


def judge_what_openssl_says_of_our_receipts():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        contents = set()
        for form in ["der", "ber"]:
            text = sign(folder, form)
            taken, content = openssl(folder, base64.b64decode(text))
            assert taken, f"OpenSSL refuses our {form}"
            contents.add(content)
            assert ours(folder, text, 0)["parts"][0]["payload"]["transactionId"] == "1000"
            for fault in REFUSED:
                text = sign(folder, form, fault)
                taken, _ = openssl(folder, base64.b64decode(text))
                assert not taken, f"OpenSSL takes {fault} in {form}"
                assert ours(folder, text, 10)["verdict"] == "rejected"
        assert len(contents) == 1, "the two forms hold different content"
        assert b"com.example.app" in contents.pop()


def judge_every_changed_byte_that_openssl_refuses():
    """A byte here and there: what OpenSSL finds not signed, we find not signed."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        good = base64.b64decode(sign(folder, "der"))
        for place in range(0, len(good), 97):
            bytes_ = bytearray(good)
            bytes_[place] ^= 1
            taken, _ = openssl(folder, bytes(bytes_))
            if taken:
                continue
            answer = ours(folder, base64.b64encode(bytes_), 10)
            assert answer["verdict"] == "rejected", f"byte {place}"
