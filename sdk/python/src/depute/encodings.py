"""base64url in which each value has only one spelling."""

from __future__ import annotations

import base64
import re

_ALPHABET = re.compile(r"[A-Za-z0-9_-]*\Z")


def encode(data: bytes) -> str:
    """base64url (RFC 4648 section 5) without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode(text: object) -> bytes | None:
    """The bytes of a text in the one spelling that encode writes; None for every other spelling."""
    if not isinstance(text, str) or len(text) % 4 == 1 or not _ALPHABET.match(text):
        return None
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return data if encode(data) == text else None
