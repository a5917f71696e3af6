"""Holder proofs, from holder-proofs.md."""

import hashlib
import json
import re
from urllib.parse import urlsplit

from canonical_json import canonical, canonical_bytes
from keys_and_principals import decode, encode, principal_key, principal_of, sign, thumbprint, verify
from refusal import Refusal

WINDOW = 60_000
SKEW = 30_000
ALGORITHMS = ("EdDSA", "Ed25519")


def sha256(data):
    return encode(hashlib.sha256(data).digest())


def target(case):
    path = case["path"].split("?")[0] if "path" in case else f"/{case['service']}/{case['method']}"
    method = {"connect-get": "GET", "http": case.get("httpMethod")}.get(case["protocol"], "POST")
    return {"htm": method, "htu": case["publicUrl"] + path}


def claims_of(case):
    claims = {
        "htm": case["htm"],
        "htu": case["htu"],
        "iat": case["now"] // 1000,
        "jti": case["jti"],
    }
    if "token" in case:
        claims["ath"] = sha256(case["token"].encode())
    if "arguments" in case:
        claims["ard"] = sha256(canonical_bytes(case["arguments"]))
    return claims


def create(seed, claims):
    jwk = {"crv": "Ed25519", "kty": "OKP", "x": principal_of(seed)}
    header = canonical({"typ": "dpop+jwt", "alg": "EdDSA", "jwk": jwk})
    payload = canonical(claims)
    signed = f"{encode(header.encode())}.{encode(payload.encode())}"
    return header, payload, f"{signed}.{encode(sign(seed, signed.encode()))}"


def check_create(case):
    header, payload, proof = create(bytes.fromhex(case["seedHex"]), claims_of(case))
    return {"header": header, "payload": payload, "proof": proof}


def invalid(fault):
    raise Refusal("invalid_proof", fault)


def _part(text):
    def members(pairs):
        if len(dict(pairs)) != len(pairs):
            invalid("form")
        return dict(pairs)

    try:
        value = json.loads(decode(text).decode("utf-8"), object_pairs_hook=members)
    except (Refusal, ValueError, RecursionError):
        invalid("form")
    if not isinstance(value, dict):
        invalid("form")
    return value


OPTIONAL = {
    "kid": lambda value: isinstance(value, str),
    "use": lambda value: value == "sig",
    "alg": lambda value: value in ALGORITHMS,
    "key_ops": lambda value: isinstance(value, list) and all(one == "verify" for one in value),
    "ext": lambda value: isinstance(value, bool),
}


def _header_principal(header):
    jwk = header.get("jwk")
    if set(header) != {"typ", "alg", "jwk"} or header["typ"] != "dpop+jwt" or header["alg"] not in ALGORITHMS:
        invalid("header")
    if not isinstance(jwk, dict) or jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519":
        invalid("header")
    for name, value in jwk.items():
        if name not in ("kty", "crv", "x") and not OPTIONAL.get(name, lambda _: False)(value):
            invalid("header")
    try:
        principal_key(jwk.get("x"))
    except Refusal:
        invalid("header")
    return jwk["x"]


def check_proof(proof, expected):
    """The accepted proof, or a refusal. `opens` is the audience of a session that the proof is to open."""
    if not proof:
        raise Refusal("proof_required")
    if len(proof) > 4096:
        invalid("size")
    parts = proof.split(".")
    if len(parts) != 3:
        invalid("form")
    header, payload = _part(parts[0]), _part(parts[1])
    principal = _header_principal(header)
    if principal != expected.get("principal", principal):
        invalid("jwk")
    if payload.get("htm") != expected["htm"]:
        invalid("htm")
    if not is_same_target(payload.get("htu"), expected["htu"]):
        invalid("htu")
    jti, iat = payload.get("jti"), payload.get("iat")
    if not isinstance(jti, str) or re.fullmatch("[!-~]{8,128}", jti) is None:
        invalid("jti")
    if not isinstance(iat, int) or isinstance(iat, bool) or not -SKEW <= expected["now"] - iat * 1000 <= WINDOW:
        invalid("iat")
    ath = sha256(expected["token"].encode()) if "token" in expected else None
    for name, wanted in (("ath", ath), ("ard", expected.get("ard"))):
        if payload.get(name) != wanted or (wanted is None and name in payload):
            invalid(name)
    _check_session(payload, expected.get("opens"))
    try:
        signature = decode(parts[2])
    except Refusal:
        invalid("signature")
    if not verify(signature, f"{parts[0]}.{parts[1]}".encode(), principal_key(principal)):
        invalid("signature")
    accepted = {
        "jti": jti,
        "principal": principal,
        "thumbprint": thumbprint(principal),
        "issuedAt": iat * 1000,
        "expiresAt": iat * 1000 + WINDOW,
    }
    return accepted if "opens" not in expected else {**accepted, "epk": payload["epk"]}


def _check_session(payload, opens):
    if opens is None:
        if "epk" in payload:
            invalid("epk")
        return
    if payload.get("aud") != opens:
        invalid("aud")
    try:
        principal_key(payload.get("epk"))
    except Refusal:
        invalid("epk")


def is_same_target(claimed, htu):
    if claimed == htu:
        return True
    one = normalised(claimed)
    return one is not None and one == normalised(htu)


def normalised(address):
    if not isinstance(address, str) or re.fullmatch(r"https?://[!-~]+", address, re.IGNORECASE) is None:
        return None
    if "\\" in address:
        return None
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError:
        return None
    if "@" in url.netloc or not url.hostname:
        return None
    scheme = url.scheme.lower()
    default = {"http": 80, "https": 443}[scheme]
    host = url.hostname.lower() + (f":{port}" if port not in (None, default) else "")

    def escape(match):
        character = chr(int(match[0][1:], 16))
        return character if re.fullmatch(r"[A-Za-z0-9\-._~]", character) else match[0].upper()

    path = re.sub("%[0-9A-Fa-f]{2}", escape, url.path)
    return f"{scheme}://{host}{without_dots(path) or '/'}"


def without_dots(path):
    out = []
    parts = path.split("/")[1:]
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if part == "..":
            out = out[:-1]
        if part not in (".", ".."):
            out.append(part)
        elif last:
            out.append("")
    return "".join(f"/{part}" for part in out)


def check_in_order(case):
    used = set()
    answers = []
    for one in case["presentations"]:
        try:
            accepted = check_proof(one["proof"], {"htm": case["htm"], "htu": case["htu"], "now": one["now"]})
        except Refusal as refusal:
            answers.append(refusal.reason)
            continue
        key = (accepted["principal"], accepted["jti"])
        answers.append("replayed_proof" if key in used else "accepted")
        used.add(key)
    return {"answers": answers}


OPERATIONS = {
    "target": target,
    "create": check_create,
    "arguments-digest": lambda case: {"ard": sha256(canonical_bytes(case["arguments"]))},
    "check": lambda case: check_proof(case["proof"], case["expected"]),
    "same-target": lambda case: {"isSame": is_same_target(case["claimed"], case["htu"])},
    "check-in-order": check_in_order,
}
