"""Seals of exported ASP sessions, verified without the platform. (vectors/transcripts.md)"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from typing import Any

from . import encodings, transparency
from .canonical import canonical_bytes
from .keys import parse_principal, verify

_TAG = b"delegateos-asp-transcript-v1\0"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class SealError(ValueError):
    """A seal is not valid. `code` is `wrong_seal` or `unknown_seal_key`."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


def entry_hash(entry: Mapping[str, Any]) -> str:
    """The hash of one member of a transcript's `messages`."""
    return "sha256:" + hashlib.sha256(canonical_bytes(entry)).hexdigest()


def session_head(transcript: Mapping[str, Any]) -> dict[str, Any]:
    """The session head of a transcript, which the platform adds to its transparency log."""
    record = {name: transcript[name] for name in ("format", "lastHash", "participants", "sessionId")}
    record["messages"] = [entry_hash(entry) for entry in transcript["messages"]]
    return {
        "format": "asp-session-head/0.1",
        "lastHash": transcript["lastHash"],
        "length": len(transcript["messages"]),
        "recordHash": entry_hash(record),
        "sessionId": transcript["sessionId"],
    }


def sealed_bytes(transcript: Mapping[str, Any], key: str) -> bytes:
    """The bytes that the platform's sealing key signs."""
    body = {name: transcript[name] for name in ("exportedAt", "state")}
    return _TAG + canonical_bytes({**body, "head": session_head(transcript), "key": key})


def verify_seal(
    transcript: Mapping[str, Any], *, seal_keys: Collection[str], log_keys: Collection[str]
) -> None:
    """
    Checks that no message was changed, added or left out since the export.

    :param transcript: the JSON document of a transcript, with its seal
    :param seal_keys: the sealing keys that the reader trusts, as principals
    :param log_keys: the keys of the transparency log that the reader trusts
    :raises SealError: when the seal does not hold
    """
    try:
        seal = transcript["seal"]
        log = seal["log"]
        _require(seal["key"] in seal_keys, "the seal is by an unknown key", "unknown_seal_key")
        head = session_head(transcript)
        _require(head["recordHash"] == seal["recordHash"], "the messages are not those that were sealed")
        signed = sealed_bytes(transcript, seal["key"])
        _require(_is_signed(seal["signature"], signed, seal["key"]), "the signature is not valid")
        _require(log["logKey"] in log_keys, "the log has an unknown key", "unknown_seal_key")
        root = _bytes("sha256:", log["rootHash"], 32)
        size, signature = int(log["treeSize"]), encodings.encode(_bytes("ed25519:", log["signature"], 64))
        time = _millis(log["signedAt"])
        is_head = transparency.verify_head(log["logKey"], size, encodings.encode(root), time, signature)
        _require(is_head, "the head of the log is not signed")
        digest = encodings.encode(hashlib.sha256(canonical_bytes(head)).digest())
        leaf = transparency.leaf("session_head", digest, _millis(log["loggedAt"]))
        proof = [_bytes("sha256:", one, 32) for one in log["hashes"]]
        is_logged = transparency.verify_inclusion(
            int(log["index"]), size, transparency.leaf_hash(leaf), root, proof
        )
        _require(is_logged, "the log does not prove the head")
    except (KeyError, TypeError) as error:
        raise SealError("wrong_seal", f"the transcript lacks a member: {error}") from error


def _require(holds: bool, detail: str, code: str = "wrong_seal") -> None:
    if not holds:
        raise SealError(code, detail)


def _is_signed(signature: str, message: bytes, principal: str) -> bool:
    key = parse_principal(principal)
    return key is not None and verify(_bytes("ed25519:", signature, 64), message, key)


def _bytes(prefix: str, text: str, length: int) -> bytes:
    _require(re.fullmatch(f"{prefix}[0-9a-f]{{{2 * length}}}", text) is not None, "a hash or signature is malformed")
    return bytes.fromhex(text[len(prefix) :])


def _millis(text: str) -> int:
    _require(_TIME.fullmatch(text) is not None, "a time is malformed")
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1000)
