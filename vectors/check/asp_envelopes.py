"""ASP envelopes, from asp-envelopes.md."""

import hashlib
import re

from canonical_json import canonical
from keys_and_principals import principal_key, sign, verify

TAG = b"asp/0.1\n"
WRAPPED = {
    "context": "content",
    "allowedPerformatives": "constraints",
    **dict.fromkeys(("schemas", "authRequirements", "references", "ratings"), "body"),
    **dict.fromkeys(("suggestedOptions", "obligationList"), "body"),
}
RENAMED = {
    "recipientId": "recipient",
    "recipientAgent": "recipient",
    "obligationsByRole": "obligations",
    "obligationList": "obligations",
}
NUMBERS = {"sequenceNumber", "maxResponseTimeMs", "maxTokenBudget", "maxDurationMs"}
#: Members of Struct or Value, which stay unchanged.
FREE = {"terms", "conditions", "data", "penalties"}
ENUMS = {"authority": "DELEGATION_AUTHORITY_", "code": "REJECTION_CODE_"}


def document(message):
    out = _members(message, "envelope")
    out.setdefault("sequenceNumber", 0)
    out["sender"].setdefault("trustScore", 0)
    return out


def _members(message, place):
    out = {}
    for name, value in message.items():
        if name == "extraMembers":
            out.update(value)
        else:
            out[RENAMED.get(name, name)] = _value(name, value, place)
    return out


def _value(name, value, place):
    if name in NUMBERS:
        return int(value)
    if name == "performative":
        return value.removeprefix("PERFORMATIVE_")
    if name in ENUMS:
        word = value.removeprefix(ENUMS[name]).lower()
        return "unspecified" if value == "REJECTION_CODE_OTHER" else word
    if place == "body" and (name in FREE or name == "context"):
        return value
    if name == "context":
        return value.get("values", [])
    if place == "content" and name == "body":
        (body,) = value.values()
        return _members(body, "body")
    if name == "allowedPerformatives":
        return [word.removeprefix("PERFORMATIVE_") for word in value.get("values", [])]
    if name == "obligationsByRole":
        return {role: _members(one, "body") for role, one in value.get("values", {}).items()}
    if WRAPPED.get(name) == place:
        value = value.get("values", [])
    if isinstance(value, list):
        return [_members(item, place) if isinstance(item, dict) else item for item in value]
    if isinstance(value, dict):
        return _members(value, name if place == "envelope" else place)
    return value


def hashed(doc):
    integrity = {k: v for k, v in doc["integrity"].items() if k not in ("hash", "signature")}
    text = canonical({**doc, "integrity": integrity})
    return text, hashlib.sha256(text.encode()).digest()


def check_sign(case):
    text, digest = hashed(case["document"])
    signature = sign(bytes.fromhex(case["seedHex"]), TAG + digest)
    return {
        "canonical": text,
        "signedHex": (TAG + digest).hex(),
        "hash": f"sha256:{digest.hex()}",
        "signature": f"ed25519:{signature.hex()}",
    }


def is_valid(doc, key):
    _, digest = hashed(doc)
    signature = doc["integrity"]["signature"]
    if doc["integrity"]["hash"] != f"sha256:{digest.hex()}":
        return False
    if re.fullmatch("ed25519:[0-9a-f]{128}", signature) is None:
        return False
    return verify(bytes.fromhex(signature[8:]), TAG + digest, principal_key(key))


OPERATIONS = {
    "document": lambda case: {"document": document(case["message"])},
    "sign": check_sign,
    "verify": lambda case: {"valid": is_valid(case["document"], case["publicKey"])},
}
