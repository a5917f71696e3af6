"""Holder sessions: one holder proof, and then an authentication code for each call."""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Any

from . import encodings
from .canonical import blake2b_256, canonical_bytes
from .denials import TokenError
from .keys import Keypair, agree, parse_principal, verify
from .proofs import (
    CLOCK_SKEW_MS,
    PROOF_WINDOW_MS,
    AcceptedProof,
    arguments_digest,
    check_proof,
    create_proof,
    now_ms,
    thumbprint,
    token_digest,
)

#: Default lifetime of a session, in milliseconds.
LIFETIME_MS = 900_000
#: Size of the window of call numbers, within which the calls of a session may arrive out of order.
WINDOW = 1024

_TAG = b"delegateos-session-v1\0"
_CALL = re.compile(r"([A-Za-z0-9_-]{22})\.([1-9][0-9]{0,15})\.([1-9][0-9]{0,15})\.([A-Za-z0-9_-]{43})\Z")
_MAX_SAFE = 2**53 - 1


@dataclass(frozen=True)
class SessionTerms:
    """The values to which a session is bound. The session's key and the verifier's signature cover all of them."""

    id: str
    principal: str
    #: token_digest of the session's token; None for a session that only names the caller.
    ath: str | None
    audience: str
    #: Milliseconds since 1970.
    expires_at: int
    holder_key: str
    verifier_key: str

    def bytes(self) -> bytes:
        """The bytes of the terms: a tag, and then their canonical JSON."""
        return _TAG + canonical_bytes(
            {
                "id": self.id,
                "principal": self.principal,
                "ath": self.ath,
                "audience": self.audience,
                "expiresAt": self.expires_at,
                "holderKey": self.holder_key,
                "verifierKey": self.verifier_key,
            }
        )


def session_key(seed: bytes, other_key: str, terms: SessionTerms) -> bytes | None:
    """The key of a session; None if the other side's key is not of prime order."""
    key = parse_principal(other_key)
    shared = None if key is None else agree(seed, key)
    return None if shared is None else blake2b_256(terms.bytes(), key=shared)


def call_code(
    key: bytes, *, id: str, counter: int, time: int, htm: str, htu: str, ard: str | None = None
) -> bytes:
    """The code of a call: keyed BLAKE2b-256 of a JSON array."""
    values = ["delegateos-call-v1", id, counter, time, htm, htu, ard]
    return blake2b_256(canonical_bytes(values), key=key)


class CallerSession:
    """The holder's side of a session."""

    def __init__(self, terms: SessionTerms, key: bytes) -> None:
        self.terms = terms
        self._key = key
        self._counter = 0

    def is_expiring(self, now: int | None = None, margin_ms: int = 10_000) -> bool:
        """Whether the session ends within the margin."""
        return (now_ms() if now is None else now) + margin_ms > self.terms.expires_at

    def prove(self, *, htm: str, htu: str, arguments: Any = ..., now: int | None = None) -> str:
        """The proof of the next call: `session.counter.time.code`. Each is valid once."""
        time = now_ms() if now is None else now
        if time > self.terms.expires_at:
            raise TokenError("invalid_proof", "session expired")
        self._counter += 1
        ard = None if arguments is ... else arguments_digest(arguments)
        code = call_code(
            self._key, id=self.terms.id, counter=self._counter, time=time, htm=htm, htu=htu, ard=ard
        )
        return f"{self.terms.id}.{self._counter}.{time}.{encodings.encode(code)}"


class SessionRequest:
    """A request for a session: `proof` goes to the verifier, and accept reads the verifier's answer. Usable once."""

    def __init__(
        self,
        keypair: Keypair,
        *,
        audience: str,
        htm: str,
        htu: str,
        token: str | None = None,
        now: int | None = None,
        jti: str | None = None,
        ephemeral: Keypair | None = None,
    ) -> None:
        self._own = ephemeral or Keypair.generate()
        self._principal = keypair.principal
        self._audience = audience
        self._ath = None if token is None else token_digest(token)
        claims = {"epk": self._own.principal, "aud": audience}
        self.proof = create_proof(keypair, htm=htm, htu=htu, token=token, now=now, jti=jti, session=claims)

    def accept(self, grant: dict[str, Any], verifier: str | None = None) -> CallerSession:
        """
        The session that a verifier granted, in the JSON form: `id`, `expiresAt`, `verifierKey`, `signer`,
        `signature`.

        :param verifier: the verifier's principal, which must have signed the grant; without it, a man in the
            middle could hold a session with each side
        :raises TokenError: invalid_proof
        """
        id, expires_at, verifier_key = (grant.get(name) for name in ("id", "expiresAt", "verifierKey"))
        raw_id = encodings.decode(id)
        if not isinstance(expires_at, int) or isinstance(expires_at, bool):
            raise TokenError("invalid_proof", "grant: form")
        if raw_id is None or len(raw_id) != 16 or parse_principal(verifier_key) is None:
            raise TokenError("invalid_proof", "grant: form")
        terms = SessionTerms(
            str(id),
            self._principal,
            self._ath,
            self._audience,
            expires_at,
            self._own.principal,
            str(verifier_key),
        )
        if verifier is not None:
            self._check_signature(terms, grant, verifier)
        key = session_key(self._own.seed, terms.verifier_key, terms)
        if key is None:
            raise TokenError("invalid_proof", "verifierKey")
        return CallerSession(terms, key)

    def accept_message(self, grant: Any, verifier: str | None = None) -> CallerSession:
        """Like accept, for a grant in the form of depute.tokens.v1.HolderSessionGrant."""
        time = grant.expire_time
        return self.accept(
            {
                "id": grant.id,
                "expiresAt": time.seconds * 1000 + time.nanos // 1_000_000,
                "verifierKey": encodings.encode(grant.verifier_key),
                "signer": grant.signer,
                "signature": encodings.encode(grant.signature),
            },
            verifier,
        )

    @staticmethod
    def _check_signature(terms: SessionTerms, grant: dict[str, Any], verifier: str) -> None:
        key = parse_principal(verifier)
        signature = encodings.decode(grant.get("signature", ""))
        if key is None or signature is None or grant.get("signer") != verifier:
            raise TokenError("invalid_proof", "grant: not signed by the verifier")
        if not verify(signature, terms.bytes(), key):
            raise TokenError("invalid_proof", "grant: signature")


class ReplayWindow:
    """The used numbers of a counter: the highest one, and which of the 1,023 below it. (RFC 4303 section 3.4.3)"""

    def __init__(self) -> None:
        self._highest = 0
        self._used: set[int] = set()

    def is_fresh(self, number: int) -> bool:
        if not 1 <= number <= _MAX_SAFE:
            return False
        if number > self._highest:
            return True
        return self._highest - number < WINDOW and number not in self._used

    def use(self, number: int) -> bool:
        """Records the use of a number. False for a used number, and for a number below the window."""
        if not self.is_fresh(number):
            return False
        self._used.add(number)
        if number > self._highest:
            self._highest = number
            self._used = {one for one in self._used if self._highest - one < WINDOW}
        return True


class HolderSession:
    """The verifier's side of a session."""

    def __init__(self, terms: SessionTerms, key: bytes) -> None:
        self.terms = terms
        self._key = key
        self._window = ReplayWindow()

    def check(
        self,
        proof: object,
        *,
        htm: str,
        htu: str,
        now: int,
        principal: str | None = None,
        token: str | None = None,
        ard: str | None = None,
        window_ms: int = PROOF_WINDOW_MS,
        skew_ms: int = CLOCK_SKEW_MS,
    ) -> AcceptedProof:
        """
        Checks the proof of one call. Raises TokenError. After success the verifier must mark the call's number as
        used.
        """
        if proof is None or proof == "":
            raise TokenError("proof_required")
        match = _CALL.match(proof) if isinstance(proof, str) else None
        code = encodings.decode(match[4]) if match else None
        if match is None or code is None or int(match[2]) > _MAX_SAFE or int(match[3]) > _MAX_SAFE:
            raise TokenError("invalid_proof", "form")
        terms, counter, time = self.terms, int(match[2]), int(match[3])
        if match[1] != terms.id:
            raise TokenError("invalid_proof", "session")
        if principal is not None and principal != terms.principal:
            raise TokenError("invalid_proof", "principal")
        if not is_within(htu, terms.audience):
            raise TokenError("invalid_proof", "audience")
        if (None if token is None else token_digest(token)) != terms.ath:
            raise TokenError("invalid_proof", "ath")
        if not -skew_ms <= now - time <= window_ms:
            raise TokenError("invalid_proof", "time")
        if now > terms.expires_at:
            raise TokenError("invalid_proof", "session expired")
        expected = call_code(self._key, id=terms.id, counter=counter, time=time, htm=htm, htu=htu, ard=ard)
        if not hmac.compare_digest(code, expected):
            raise TokenError("invalid_proof", "code")
        if not self._window.is_fresh(counter):
            raise TokenError("replayed_proof")
        return AcceptedProof(
            f"{terms.id}.{counter}",
            terms.principal,
            thumbprint(terms.principal),
            time,
            min(time + window_ms, terms.expires_at),
            counter=counter,
        )

    def use(self, counter: int) -> bool:
        """Records the use of an accepted call's number. False for a number that was used or is too old."""
        return self._window.use(counter)


def open_session(
    proof: object,
    *,
    audience: str,
    htm: str,
    htu: str,
    now: int,
    token: str | None = None,
    lifetime_ms: int = LIFETIME_MS,
    not_after: int | None = None,
    verifier: Keypair | None = None,
    ephemeral: Keypair | None = None,
    id: str | None = None,
) -> tuple[HolderSession, dict[str, Any]]:
    """The verifier's side: a session for the proof's principal, and the grant to answer with. Raises TokenError."""
    accepted = check_proof(proof, htm=htm, htu=htu, now=now, token=token, opens=audience)
    own = ephemeral or Keypair.generate()
    end = now + lifetime_ms
    terms = SessionTerms(
        id or encodings.encode(secrets.token_bytes(16)),
        accepted.principal,
        None if token is None else token_digest(token),
        audience,
        end if not_after is None else min(end, not_after),
        accepted.epk or "",
        own.principal,
    )
    key = session_key(own.seed, terms.holder_key, terms)
    if key is None:
        raise TokenError("invalid_proof", "epk")
    grant: dict[str, Any] = {
        "id": terms.id,
        "expiresAt": terms.expires_at,
        "verifierKey": terms.verifier_key,
    }
    if verifier is not None:
        grant["signer"] = verifier.principal
        grant["signature"] = encodings.encode(verifier.sign(terms.bytes()))
    return HolderSession(terms, key), grant


def is_within(htu: str, audience: str) -> bool:
    """Whether an address equals the audience or is below the audience."""
    return htu == audience or htu.startswith(audience if audience.endswith("/") else f"{audience}/")
