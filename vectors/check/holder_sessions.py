"""Holder sessions, from holder-sessions.md."""

import hashlib
import hmac
import re

from canonical_json import canonical_bytes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from holder_proofs import check_proof, claims_of, create, sha256
from keys_and_principals import (
    P,
    blake2b,
    decode,
    encode,
    is_admissible,
    principal_key,
    principal_of,
    public_key,
    sign,
    thumbprint,
)
from refusal import Refusal

TAG = b"delegateos-session-v1\0"


def shared_secret(seed, other):
    """The X25519 shared secret of an Ed25519 seed and the other side's Ed25519 key."""
    if not is_admissible(other):
        raise Refusal("invalid_proof")
    y = int.from_bytes(other, "little") & (2**255 - 1)
    u = (1 + y) * pow(1 - y, -1, P) % P
    scalar = hashlib.sha512(seed).digest()[:32]
    own = X25519PrivateKey.from_private_bytes(scalar)
    return own.exchange(X25519PublicKey.from_public_bytes(u.to_bytes(32, "little")))


def check_open(case):
    seeds = {name: bytes.fromhex(case[f"{name}SeedHex"]) for name in ("holder", "verifier", "signer")}
    holder_key, verifier_key = principal_of(seeds["holder"]), principal_of(seeds["verifier"])
    claims = {**claims_of(case), "epk": holder_key, "aud": case["audience"]}
    _, _, proof = create(bytes.fromhex(case["seedHex"]), claims)
    expected = {key: case[key] for key in ("htm", "htu", "now", "token") if key in case}
    accepted = check_proof(proof, {**expected, "opens": case["audience"]})
    terms = {
        "ath": claims.get("ath"),
        "audience": case["audience"],
        "expiresAt": case["expiresAt"],
        "holderKey": accepted["epk"],
        "id": encode(bytes.fromhex(case["idHex"])),
        "principal": accepted["principal"],
        "verifierKey": verifier_key,
    }
    signed = TAG + canonical_bytes(terms)
    shared = shared_secret(seeds["holder"], public_key(seeds["verifier"]))
    assert shared == shared_secret(seeds["verifier"], principal_key(holder_key))
    grant = {
        "id": terms["id"],
        "expiresAt": terms["expiresAt"],
        "verifierKey": verifier_key,
        "signer": principal_of(seeds["signer"]),
        "signature": encode(sign(seeds["signer"], signed)),
    }
    return {
        "proof": proof,
        "termsHex": signed.hex(),
        "sharedHex": shared.hex(),
        "keyHex": blake2b(signed, shared).hex(),
        "grant": grant,
    }


def call_code(key, *call):
    return blake2b(canonical_bytes(["delegateos-call-v1", *call]), key)


def check_prove(case):
    ard = sha256(canonical_bytes(case["arguments"])) if "arguments" in case else None
    call = (case["id"], case["counter"], case["now"], case["htm"], case["htu"], ard)
    code = call_code(bytes.fromhex(case["keyHex"]), *call)
    return {"proof": f"{case['id']}.{case['counter']}.{case['now']}.{encode(code)}"}


def invalid(fault):
    raise Refusal("invalid_proof", fault)


FORM = re.compile(r"([A-Za-z0-9_-]{22})\.([1-9][0-9]{0,15})\.([1-9][0-9]{0,15})\.([A-Za-z0-9_-]{43})")


def check_call(case):
    terms, expected, proof = case["terms"], case["expected"], case["proof"]
    if not proof:
        raise Refusal("proof_required")
    found = FORM.fullmatch(proof)
    if found is None:
        invalid("form")
    session, counter, time = found[1], int(found[2]), int(found[3])
    try:
        code = decode(found[4])
    except Refusal:
        invalid("form")
    if max(counter, time) >= 2**53:
        invalid("form")
    if session != terms["id"]:
        invalid("session")
    if expected.get("principal", terms["principal"]) != terms["principal"]:
        invalid("principal")
    audience = terms["audience"]
    if expected["htu"] != audience and not expected["htu"].startswith(audience.rstrip("/") + "/"):
        invalid("audience")
    ath = sha256(expected["token"].encode()) if "token" in expected else None
    if ath != terms.get("ath"):
        invalid("ath")
    if not -30_000 <= expected["now"] - time <= 60_000:
        invalid("time")
    if expected["now"] > terms["expiresAt"]:
        invalid("session expired")
    call = (session, counter, time, expected["htm"], expected["htu"], expected.get("ard"))
    if not hmac.compare_digest(code, call_code(bytes.fromhex(case["keyHex"]), *call)):
        invalid("code")
    return {
        "jti": f"{session}.{counter}",
        "principal": terms["principal"],
        "thumbprint": thumbprint(terms["principal"]),
        "issuedAt": time,
        "expiresAt": min(time + 60_000, terms["expiresAt"]),
        "counter": counter,
    }


def check_window(case):
    used, answers = set(), []
    for counter in case["counters"]:
        highest = max(used, default=0)
        fresh = counter > highest or (highest - counter < 1024 and counter not in used)
        answers.append(fresh)
        if fresh:
            used.add(counter)
    return {"used": answers}


OPERATIONS = {"open": check_open, "prove": check_prove, "check": check_call, "window": check_window}
