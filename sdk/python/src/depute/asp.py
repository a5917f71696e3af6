"""Messages of ASP sessions: the bytes that their senders hash and sign."""

from __future__ import annotations

import hashlib
from typing import Any, Mapping

from .canonical import CanonicalError, canonical_json
from .denials import TokenError
from .keys import Keypair, parse_principal, verify

#: The tag before the hash in the signed bytes.
TAG = b"asp/0.1\n"

#: The previousHash of a session's first message.
FIRST_HASH = f"sha256:{'0' * 64}"


def canonical_envelope(document: Mapping[str, Any]) -> str:
    """The canonical JSON of a message, without its hash and signature."""
    integrity = dict(document.get("integrity", {}))
    integrity.pop("hash", None)
    integrity.pop("signature", None)
    return canonical_json({**document, "integrity": integrity})


def envelope_digest(document: Mapping[str, Any]) -> bytes:
    """The hash of a message: 32 bytes."""
    return hashlib.sha256(canonical_envelope(document).encode()).digest()


def sign_envelope(
    document: Mapping[str, Any], sender: Keypair, previous_hash: str | None = None
) -> dict[str, Any]:
    """
    The message with its hash and signature.

    :param previous_hash: the hash of the session's newest message, by any sender; by default that of the document
    """
    integrity = dict(document.get("integrity", {}))
    integrity["previousHash"] = previous_hash or integrity.get("previousHash", FIRST_HASH)
    unsigned = {**document, "integrity": integrity}
    digest = envelope_digest(unsigned)
    integrity["hash"] = f"sha256:{digest.hex()}"
    integrity["signature"] = f"ed25519:{sender.sign(TAG + digest).hex()}"
    return {**document, "integrity": integrity}


def verify_envelope(document: Mapping[str, Any], principal: str) -> None:
    """Checks the hash and the signature of a message. Raises TokenError: malformed_token or invalid_signature."""
    try:
        digest = envelope_digest(document)
    except CanonicalError:
        raise TokenError("malformed_token", "not JSON") from None
    integrity = document.get("integrity", {})
    if integrity.get("hash") != f"sha256:{digest.hex()}":
        raise TokenError("invalid_signature", "integrity.hash")
    prefix, _, text = str(integrity.get("signature", "")).partition(":")
    key = parse_principal(principal)
    try:
        signature = bytes.fromhex(text)
    except ValueError:
        signature = b""
    is_exact = prefix == "ed25519" and signature.hex() == text
    if key is None or not is_exact or not verify(signature, TAG + digest, key):
        raise TokenError("invalid_signature", "integrity.signature")
