"""Holder proofs (RFC 9449, DPoP): a signed statement that the caller has a key, for one request."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from . import encodings
from ._targets import is_same_target, proof_target
from .canonical import canonical_bytes, parse_strict_json
from .denials import TokenError
from .keys import Keypair, parse_principal, verify

#: Maximum length of a proof, in characters.
MAX_PROOF_CHARS = 4096
#: Milliseconds after its `iat` (time of issue) for which a proof is accepted.
PROOF_WINDOW_MS = 60_000
#: Maximum difference between the clocks of two machines, in milliseconds.
CLOCK_SKEW_MS = 30_000

_JTI = re.compile(r"[\x21-\x7e]{8,128}\Z")
_ALGORITHMS = ("EdDSA", "Ed25519")


def now_ms() -> int:
    """Milliseconds since 1970, by this machine's clock."""
    return time.time_ns() // 1_000_000


def create_proof(
    keypair: Keypair,
    *,
    htm: str,
    htu: str,
    token: str | None = None,
    arguments: Any = ...,
    now: int | None = None,
    jti: str | None = None,
    session: Mapping[str, str] | None = None,
) -> str:
    """
    A new proof. It is valid once.

    :param htm: the HTTP method, POST for every gRPC call
    :param htu: the public address with the path, without query and fragment
    :param token: the token that goes with the request; without one, the proof only names the caller
    :param arguments: arguments of a tool call; the proof then holds for these alone
    :param now: milliseconds since 1970
    :param session: claims `epk` and `aud` of a proof that opens a session
    """
    header = {"alg": "EdDSA", "jwk": jwk(keypair.principal), "typ": "dpop+jwt"}
    claims: dict[str, Any] = {
        "htm": htm,
        "htu": htu,
        "iat": (now_ms() if now is None else now) // 1000,
        "jti": encodings.encode(secrets.token_bytes(16)) if jti is None else jti,
    }
    if token is not None:
        claims["ath"] = token_digest(token)
    if arguments is not ...:
        claims["ard"] = arguments_digest(arguments)
    claims.update(session or {})
    signed = f"{_part(header)}.{_part(claims)}"
    return f"{signed}.{encodings.encode(keypair.sign(signed.encode()))}"


def holder_headers(
    keypair: Keypair, public_url: str, path: str, *, token: str | None = None, method: str = "POST"
) -> dict[str, str]:
    """The headers of one request: a proof, and the token where there is one."""
    proof = create_proof(keypair, htm=method, htu=proof_target(public_url, path), token=token)
    return {"dpop": proof} if token is None else {"dpop": proof, "authorization": f"DPoP {token}"}


def jwk(principal: str) -> dict[str, str]:
    """The public key of a principal as a JSON Web Key. (RFC 8037)"""
    return {"crv": "Ed25519", "kty": "OKP", "x": principal}


def thumbprint(principal: str) -> str:
    """The RFC 7638 thumbprint of a principal's key."""
    return encodings.encode(hashlib.sha256(canonical_bytes(jwk(principal))).digest())


def token_digest(token: str) -> str:
    """The claim `ath`: SHA-256 of the serialized token. (RFC 9449 section 4.2)"""
    return encodings.encode(hashlib.sha256(token.encode()).digest())


def arguments_digest(arguments: Any) -> str:
    """The claim `ard`: SHA-256 of the canonical JSON of a call's arguments."""
    return encodings.encode(hashlib.sha256(canonical_bytes(arguments)).digest())


@dataclass(frozen=True)
class AcceptedProof:
    """A valid proof, which may be a replay. The verifier keeps (principal, jti) until expires_at, in milliseconds."""

    jti: str
    principal: str
    thumbprint: str
    issued_at: int
    expires_at: int
    #: The key of the session that the proof opens.
    epk: str | None = None
    #: The number of the call in its session.
    counter: int | None = None


def check_proof(
    proof: object,
    *,
    htm: str,
    htu: str,
    now: int,
    principal: str | None = None,
    token: str | None = None,
    ard: str | None = None,
    opens: str | None = None,
    window_ms: float = PROOF_WINDOW_MS,
    skew_ms: float = CLOCK_SKEW_MS,
) -> AcceptedProof:
    """
    Checks a proof (RFC 9449 section 4.3). `ath`, `ard` and `epk` must be present exactly where they are expected.

    Raises TokenError: proof_required without a proof, internal_context for an invalid time or window, else
    invalid_proof with the faulty part.
    """
    if proof is None or proof == "":
        raise TokenError("proof_required")
    if not all(isinstance(ms, (int, float)) and 0 <= ms < float("inf") for ms in (now, window_ms, skew_ms)):
        raise TokenError("internal_context")
    if not isinstance(proof, str) or len(proof) > MAX_PROOF_CHARS:
        raise TokenError("invalid_proof", "size")
    parts = proof.split(".")
    header, claims = (_read_part(part) for part in parts[:2]) if len(parts) == 3 else (None, None)
    if header is None or claims is None:
        raise TokenError("invalid_proof", "form")
    signer = _read_header(header)
    if signer is None:
        raise TokenError("invalid_proof", "header")
    if principal is not None and signer != principal:
        raise TokenError("invalid_proof", "jwk")

    target = claims.get("htu")
    if claims.get("htm") != htm:
        raise TokenError("invalid_proof", "htm")
    if target != htu and not (isinstance(target, str) and is_same_target(target, htu)):
        raise TokenError("invalid_proof", "htu")
    jti = claims.get("jti")
    if not isinstance(jti, str) or not _JTI.match(jti):
        raise TokenError("invalid_proof", "jti")
    iat = _integer(claims.get("iat"))
    if iat is None or not -skew_ms <= now - iat * 1000 <= window_ms:
        raise TokenError("invalid_proof", "iat")
    if _claim(claims, "ath") != (None if token is None else token_digest(token)):
        raise TokenError("invalid_proof", "ath")
    if _claim(claims, "ard") != ard:
        raise TokenError("invalid_proof", "ard")
    if opens is None:
        if "epk" in claims:
            raise TokenError("invalid_proof", "epk")
    else:
        if claims.get("aud") != opens:
            raise TokenError("invalid_proof", "aud")
        if parse_principal(claims.get("epk")) is None:
            raise TokenError("invalid_proof", "epk")

    signature = encodings.decode(parts[2])
    key = parse_principal(signer)
    if signature is None or key is None or not verify(signature, f"{parts[0]}.{parts[1]}".encode(), key):
        raise TokenError("invalid_proof", "signature")
    issued_at = iat * 1000
    return AcceptedProof(
        jti,
        signer,
        thumbprint(signer),
        issued_at,
        int(issued_at + window_ms),
        claims["epk"] if opens is not None else None,
    )


class ProofMemory:
    """The proofs that a verifier has accepted. The verifier accepts each proof only once."""

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._until: dict[tuple[str, str], int] = {}

    def use(self, proof: AcceptedProof, now: int) -> None:
        """Marks a proof as used. Raises TokenError: replayed_proof for a used proof, and while the memory is full."""
        key = (proof.principal, proof.jti)
        if self._until.get(key, -1) >= now:
            raise TokenError("replayed_proof")
        if len(self._until) >= self._most:
            self._until = {one: until for one, until in self._until.items() if until >= now}
        if len(self._until) >= self._most:
            raise TokenError("replayed_proof", "no room for further proofs; try again later")
        self._until[key] = proof.expires_at


_ABSENT = object()


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """The value of a claim; None for an absent claim. A JSON null gives a marker that equals no expected value."""
    value = claims.get(name, _ABSENT)
    return None if value is _ABSENT else (_ABSENT if value is None else value)


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value == int(value) and abs(value) < 2**53 else None


def _read_header(header: Mapping[str, Any]) -> str | None:
    """The principal of a header with exactly typ, alg and a public Ed25519 key."""
    key = header.get("jwk")
    if set(header) != {"alg", "jwk", "typ"} or header["typ"] != "dpop+jwt":
        return None
    if header["alg"] not in _ALGORITHMS or not isinstance(key, dict):
        return None
    if key.get("kty") != "OKP" or key.get("crv") != "Ed25519":
        return None
    optional: dict[str, Callable[[Any], bool]] = {
        "kid": lambda value: isinstance(value, str),
        "use": lambda value: value == "sig",
        "alg": lambda value: value in _ALGORITHMS,
        "key_ops": lambda value: isinstance(value, list) and all(one == "verify" for one in value),
        "ext": lambda value: isinstance(value, bool),
    }
    for name, value in key.items():
        if name in ("kty", "crv", "x"):
            continue
        if name not in optional or not optional[name](value):
            return None
    x: Any = key.get("x")
    return x if parse_principal(x) is not None else None


def _read_part(text: str) -> dict[str, Any] | None:
    data = encodings.decode(text)
    if data is None:
        return None
    try:
        value = parse_strict_json(data.decode("utf-8"))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _part(value: Any) -> str:
    return encodings.encode(canonical_bytes(value))
