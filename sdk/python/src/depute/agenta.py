"""Digests of offers and signatures of callbacks of Agenta. (vectors/agenta-digests.md)"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from .canonical import canonical_json

_COMPONENTS = ("@method", "@target-uri", "content-type", "content-digest")


def offer_content(offer: Mapping[str, Any]) -> str:
    """The canonical JSON of an offer's content. `offer` is the message in the JSON form of protobuf."""
    return canonical_json({name: value for name, value in offer.items() if name != "offerVersion"})


def offer_digest(offer: Mapping[str, Any]) -> str:
    """The digest of an offer's content, in hexadecimal. Versions with the same content have the same digest."""
    return hashlib.sha256(offer_content(offer).encode()).hexdigest()


def content_digest(body: bytes) -> str:
    """The header Content-Digest of a body. (RFC 9530)"""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def signature_params(created: int, key_id: str) -> str:
    """
    The parameters of a callback's signature. (RFC 9421 section 2.3)

    :param created: seconds since 1970
    :param key_id: the thumbprint of the platform's callback key
    """
    covered = " ".join(f'"{name}"' for name in _COMPONENTS)
    return f'({covered});created={created};keyid="{key_id}";alg="ed25519"'


def signature_base(url: str, content_type: str, digest: str, params: str) -> str:
    """The text that the platform signs for a receipt that it sends to `url`. (RFC 9421 section 2.5)"""
    values = ("POST", url, content_type, digest)
    lines = [f'"{name}": {value}' for name, value in zip(_COMPONENTS, values)]
    return "\n".join([*lines, f'"@signature-params": {params}'])
