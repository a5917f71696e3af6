"""Documents that a principal signs whole: contracts, attestations and revocations. (DelegateOS 4.1, 5.1, 7.1)"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Mapping, Sequence

from . import _shapes as shapes
from . import encodings
from .canonical import CanonicalError, blake2b_256, canonical_bytes
from .denials import TokenError
from .keys import Keypair, parse_principal, verify
from .proofs import now_ms
from .tokens import new_id

_version = shapes.one_of("0.1")


def _is_schema(value: Any) -> bool:
    return isinstance(value, (bool, dict))


def _is_number(value: Any, most: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= most


_SHAPES: dict[str, shapes.Shape] = {
    "contract": shapes.object_of(
        {
            "id": shapes.id_of("ct"),
            "version": _version,
            "issuer": shapes.principal,
            "createdAt": shapes.time,
            "task": shapes.object_of(
                {
                    "title": shapes.text_of(1000),
                    "description": shapes.text_of(100_000),
                    "inputs": shapes.any_object,
                    "outputSchema": shapes.that("not a schema", _is_schema),
                }
            ),
            "verification": shapes.any_object,
            "constraints": shapes.object_of(
                {
                    "maxBudgetMicrocents": shapes.count,
                    "deadline": shapes.time,
                    "maxChainDepth": shapes.count,
                    "requiredCapabilities": shapes.array_of(shapes.text_of(200), 64),
                }
            ),
            "signature": shapes.signature,
        }
    ),
    "attestation": shapes.object_of(
        {
            "id": shapes.id_of("att"),
            "version": _version,
            "contractId": shapes.id_of("ct"),
            "delegationId": shapes.id_of("del"),
            "principal": shapes.principal,
            "createdAt": shapes.time,
            "type": shapes.one_of("completion", "delegation_verification"),
            "result": shapes.object_of(
                {
                    "success": shapes.boolean,
                    "costMicrocents": shapes.count,
                    "durationMs": shapes.that(
                        "not a number of milliseconds", lambda value: _is_number(value, 2**53 - 1)
                    ),
                },
                {
                    "output": shapes.anything,
                    "outputHash": shapes.text_of(200),
                    "verificationOutcome": shapes.object_of(
                        {"method": shapes.text_of(100), "passed": shapes.boolean},
                        {
                            "score": shapes.that(
                                "not a number from 0 to 1", lambda value: _is_number(value, 1)
                            ),
                            "details": shapes.text_of(100_000),
                        },
                    ),
                },
            ),
            "childAttestations": shapes.array_of(shapes.id_of("att"), 1000),
            "signature": shapes.signature,
        }
    ),
    "revocation": shapes.object_of(
        {
            "revocationId": shapes.digest,
            "revokedBy": shapes.principal,
            "revokedAt": shapes.time,
            "scope": shapes.one_of("block", "chain"),
            "signature": shapes.signature,
        }
    ),
}

#: The member that names the required signer.
_SIGNER = {"contract": "issuer", "attestation": "principal", "revocation": "revokedBy"}


def object_digest(value: Mapping[str, Any]) -> bytes:
    """The 32 bytes that an object's signature covers: BLAKE2b-256 of the canonical JSON without `signature`."""
    return blake2b_256(canonical_bytes({key: one for key, one in value.items() if key != "signature"}))


def sign_object(kind: str, body: Mapping[str, Any], keypair: Keypair) -> dict[str, Any]:
    """
    Signs an object as a `contract`, an `attestation` or a `revocation`. Raises TokenError unless the object
    is valid for its kind, and the key belongs to the object's issuer, principal or revokedBy.
    """
    signed = {**body, "signature": encodings.encode(keypair.sign(object_digest(body)))}
    verify_object(kind, signed)
    return signed


def verify_object(kind: str, value: Any) -> None:
    """Checks the form and the signature of an object. Raises TokenError: malformed_token or invalid_signature."""
    _SHAPES[kind](value, "")
    key, signature = parse_principal(value[_SIGNER[kind]]), encodings.decode(value["signature"])
    try:
        digest = object_digest(value)
    except CanonicalError:
        raise TokenError("malformed_token", "not JSON") from None
    if key is None or signature is None or not verify(signature, digest, key):
        raise TokenError("invalid_signature", f"not signed by {_SIGNER[kind]}")


def sign_contract(
    issuer: Keypair,
    *,
    title: str,
    description: str = "",
    inputs: Mapping[str, Any] | None = None,
    output_schema: Any = True,
    verification: Mapping[str, Any],
    max_budget_microcents: int,
    deadline: datetime | timedelta = timedelta(hours=1),
    max_chain_depth: int = 0,
    required_capabilities: Sequence[str] = (),
    id: str | None = None,
) -> dict[str, Any]:
    """A signed contract: the required output, the checks and the greatest cost. (DelegateOS 5.1)"""
    now = datetime.now(timezone.utc)
    end = now + deadline if isinstance(deadline, timedelta) else deadline
    body = {
        "id": id or new_id("ct"),
        "version": "0.1",
        "issuer": issuer.principal,
        "createdAt": _text(now),
        "task": {
            "title": title,
            "description": description,
            "inputs": dict(inputs or {}),
            "outputSchema": output_schema,
        },
        "verification": dict(verification),
        "constraints": {
            "maxBudgetMicrocents": max_budget_microcents,
            "deadline": _text(end),
            "maxChainDepth": max_chain_depth,
            "requiredCapabilities": list(required_capabilities),
        },
    }
    return sign_object("contract", body, issuer)


def sign_attestation(
    worker: Keypair,
    *,
    task: Mapping[str, Any],
    output: Any,
    success: bool = True,
    cost_microcents: int = 0,
    duration_ms: int = 0,
    id: str | None = None,
) -> dict[str, Any]:
    """A worker's signed statement of its result, for a task with a contract. (DelegateOS 7.1)"""
    body = {
        "id": id or new_id("att"),
        "version": "0.1",
        "contractId": task["contract_id"],
        "delegationId": task["delegation_id"],
        "principal": worker.principal,
        "createdAt": _text(datetime.now(timezone.utc)),
        "type": "completion",
        "result": {
            "success": success,
            "output": output,
            "costMicrocents": cost_microcents,
            "durationMs": duration_ms,
        },
        "childAttestations": [],
    }
    return sign_object("attestation", body, worker)


def sign_revocation(
    revoker: Keypair, revocation_id: str, scope: str = "chain", now: int | None = None
) -> dict[str, Any]:
    """A signed revocation of one block, and with scope `chain` of all below it. (DelegateOS 4.1)"""
    body = {
        "revocationId": revocation_id,
        "revokedBy": revoker.principal,
        "revokedAt": shapes.format_time(now_ms() if now is None else now),
        "scope": scope,
    }
    return sign_object("revocation", body, revoker)


def _text(moment: datetime) -> str:
    return shapes.format_time(int(moment.timestamp() * 1000))
