"""Proofs of the verifier's transparency log, checked without the platform. (RFC 6962, RFC 9162)"""

from __future__ import annotations

import hashlib
from typing import Sequence

from . import encodings
from .canonical import canonical_bytes
from .keys import parse_principal, verify

#: The tag before the head of a log in the signed bytes.
_HEAD_TAG = b"delegateos-log-head-v1\0"


def leaf(kind: str, digest: str, time: int) -> bytes:
    """
    The bytes of a leaf.

    :param kind: `attestation`, `verification_result`, `revocation`, `session_head` or `audit_seal`
    :param digest: base64url of the SHA-256 of the document's canonical JSON
    :param time: milliseconds since 1970
    """
    return canonical_bytes({"digest": digest, "kind": kind, "time": time})


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf."""
    return hashlib.sha256(b"\0" + data).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def verify_inclusion(index: int, tree_size: int, leaf: bytes, root: bytes, proof: Sequence[bytes]) -> bool:
    """
    Whether a leaf is in a tree. (RFC 9162 section 2.1.3.2)

    :param leaf: the hash of the leaf
    :param proof: the sibling hashes, from the leaf upwards
    """
    first, last = index, tree_size - 1
    if not 0 <= first <= last:
        return False
    found = leaf
    for sibling in proof:
        if last == 0:
            return False
        if first % 2 == 1 or first == last:
            found = _node(sibling, found)
            while first % 2 == 0 and first != 0:
                first, last = first // 2, last // 2
        else:
            found = _node(found, sibling)
        first, last = first // 2, last // 2
    return last == 0 and found == root


def verify_consistency(
    first_size: int, first_root: bytes, second_size: int, second_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether one tree is the beginning of another. (RFC 9162 section 2.1.4.2)"""
    if not 0 <= first_size <= second_size:
        return False
    if first_size == second_size:
        return not proof and first_root == second_root
    if first_size == 0:
        return not proof and first_root == hashlib.sha256().digest()
    hashes = list(proof)
    if first_size & (first_size - 1) == 0:
        hashes.insert(0, first_root)
    if not hashes:
        return False
    first, last = first_size - 1, second_size - 1
    while first % 2 == 1:
        first, last = first // 2, last // 2
    one = other = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if first % 2 == 1 or first == last:
            one, other = _node(sibling, one), _node(sibling, other)
            while first % 2 == 0 and first != 0:
                first, last = first // 2, last // 2
        else:
            other = _node(other, sibling)
        first, last = first // 2, last // 2
    return last == 0 and one == first_root and other == second_root


def head_bytes(log: str, tree_size: int, root_hash: str, time: int) -> bytes:
    """The bytes that the log's principal signs; `root_hash` is base64url, `time` milliseconds since 1970."""
    return _HEAD_TAG + canonical_bytes(
        {"log": log, "rootHash": root_hash, "time": time, "treeSize": tree_size}
    )


def verify_head(log: str, tree_size: int, root_hash: str, time: int, signature: str) -> bool:
    """Whether a log's principal signed a head."""
    key, found = parse_principal(log), encodings.decode(signature)
    if key is None or found is None:
        return False
    return verify(found, head_bytes(log, tree_size, root_hash, time), key)
