"""DSSE v1 envelopes, in which the verifier exports attestations."""

from __future__ import annotations

import base64
from typing import Any, Mapping

from .denials import TokenError
from .keys import Keypair, parse_principal, verify

IN_TOTO = "application/vnd.in-toto+json"


def signed_bytes(payload_type: str, payload: bytes) -> bytes:
    """The pre-authentication encoding: the bytes that are signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign_payload(payload: bytes, signer: Keypair, payload_type: str = IN_TOTO) -> dict[str, Any]:
    """The envelope of a payload."""
    signature = signer.sign(signed_bytes(payload_type, payload))
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": payload_type,
        "signatures": [{"keyid": signer.principal, "sig": base64.b64encode(signature).decode()}],
    }


def open_envelope(envelope: Mapping[str, Any], principal: str, payload_type: str = IN_TOTO) -> bytes:
    """The payload of an envelope that a principal signed. Raises TokenError: malformed_token or invalid_signature."""
    key = parse_principal(principal)
    try:
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = [
            base64.b64decode(one["sig"], validate=True)
            for one in envelope["signatures"]
            if one.get("keyid") == principal
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise TokenError("malformed_token", "envelope") from None
    if envelope.get("payloadType") != payload_type:
        raise TokenError("malformed_token", "envelope.payloadType")
    signed = signed_bytes(payload_type, payload)
    if key is None or not any(verify(signature, signed, key) for signature in signatures):
        raise TokenError("invalid_signature", "envelope.signatures")
    return payload
