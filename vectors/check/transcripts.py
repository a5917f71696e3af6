"""Seals of transcripts, from transcripts.md."""

import datetime
import hashlib
import re

from canonical_json import canonical, canonical_bytes
from keys_and_principals import encode, principal_key, principal_of, sign, verify
from merkle_proofs import includes
from refusal import Refusal


def sha(value):
    return "sha256:" + hashlib.sha256(canonical_bytes(value)).hexdigest()


def head_of(transcript):
    record = {name: transcript[name] for name in ("format", "lastHash", "participants", "sessionId")}
    record["messages"] = [sha(entry) for entry in transcript["messages"]]
    return {
        "format": "asp-session-head/0.1",
        "lastHash": transcript["lastHash"],
        "length": len(transcript["messages"]),
        "recordHash": sha(record),
        "sessionId": transcript["sessionId"],
    }


def signed_bytes(transcript, key):
    body = {name: transcript[name] for name in ("exportedAt", "state")}
    return b"delegateos-asp-transcript-v1\0" + canonical_bytes({**body, "head": head_of(transcript), "key": key})


def head(case):
    document = head_of(case["transcript"])
    return {
        "recordHash": document["recordHash"],
        "head": canonical(document),
        "digestHex": hashlib.sha256(canonical_bytes(document)).hexdigest(),
    }


def seal(case):
    seed = bytes.fromhex(case["seedHex"])
    key = principal_of(seed)
    signed = signed_bytes(case["transcript"], key)
    return {"key": key, "signedHex": signed.hex(), "signature": "ed25519:" + sign(seed, signed).hex()}


def without(prefix, text, digits):
    if not re.fullmatch(f"{prefix}[0-9a-f]{{{digits}}}", text):
        raise Refusal("wrong_seal")
    return bytes.fromhex(text[len(prefix) :])


def millis(text):
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text):
        raise Refusal("wrong_seal")
    moment = datetime.datetime.fromisoformat(text[:-1]).replace(tzinfo=datetime.timezone.utc)
    return round(moment.timestamp() * 1000)


def require(holds, reason):
    if not holds:
        raise Refusal(reason)


def verify_seal(case):
    transcript = case["transcript"]
    found, log = transcript["seal"], transcript["seal"]["log"]
    require(found["key"] in case["sealKeys"], "unknown_seal_key")
    document = head_of(transcript)
    require(document["recordHash"] == found["recordHash"], "wrong_seal")
    signature = without("ed25519:", found["signature"], 128)
    require(verify(signature, signed_bytes(transcript, found["key"]), principal_key(found["key"])), "wrong_seal")
    require(log["logKey"] in case["logKeys"], "unknown_seal_key")
    root = without("sha256:", log["rootHash"], 64)
    state = {"log": log["logKey"], "rootHash": encode(root), "time": millis(log["signedAt"]), "treeSize": log["treeSize"]}
    signed = b"delegateos-log-head-v1\0" + canonical_bytes(state)
    log_signature = without("ed25519:", log["signature"], 128)
    require(verify(log_signature, signed, principal_key(log["logKey"])), "wrong_seal")
    digest = encode(hashlib.sha256(canonical_bytes(document)).digest())
    leaf = {"digest": digest, "kind": "session_head", "time": millis(log["loggedAt"])}
    proof = {
        "index": log["index"],
        "treeSize": log["treeSize"],
        "leafHex": hashlib.sha256(b"\0" + canonical_bytes(leaf)).hexdigest(),
        "rootHex": root.hex(),
        "proofHex": [without("sha256:", one, 64).hex() for one in log["hashes"]],
    }
    require(includes(proof), "wrong_seal")
    return {"sealed": True}


OPERATIONS = {
    "entry-hash": lambda case: {"hash": sha(case["entry"])},
    "head": head,
    "seal": seal,
    "verify-seal": verify_seal,
}
