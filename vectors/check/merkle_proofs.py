"""Merkle proofs and heads of the log, from merkle-proofs.md."""

import hashlib

from canonical_json import canonical, canonical_bytes
from keys_and_principals import decode, principal_key, verify


def node(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def check_leaf(case):
    leaf = canonical({"digest": case["digest"], "kind": case["kind"], "time": case["time"]})
    return {"leaf": leaf, "hashHex": hashlib.sha256(b"\0" + leaf.encode()).hexdigest()}


def includes(case):
    f, s = case["index"], case["treeSize"] - 1
    r = bytes.fromhex(case["leafHex"])
    if f > s:
        return False
    for p in map(bytes.fromhex, case["proofHex"]):
        if s == 0:
            return False
        if f % 2 or f == s:
            r = node(p, r)
            while f % 2 == 0 and f != 0:
                f, s = f // 2, s // 2
        else:
            r = node(r, p)
        f, s = f // 2, s // 2
    return s == 0 and r.hex() == case["rootHex"]


def extends(case):
    first, second = case["firstSize"], case["secondSize"]
    first_root, second_root = (bytes.fromhex(case[name]) for name in ("firstRootHex", "secondRootHex"))
    proof = [bytes.fromhex(one) for one in case["proofHex"]]
    if first > second:
        return False
    if first == second:
        return not proof and first_root == second_root
    if first == 0:
        return not proof and first_root == hashlib.sha256().digest()
    if first & (first - 1) == 0:
        proof = [first_root, *proof]
    f, s = first - 1, second - 1
    while f % 2:
        f, s = f // 2, s // 2
    if not proof:
        return False
    a = b = proof[0]
    for p in proof[1:]:
        if s == 0:
            return False
        if f % 2 or f == s:
            a, b = node(p, a), node(p, b)
            while f % 2 == 0 and f != 0:
                f, s = f // 2, s // 2
        else:
            b = node(b, p)
        f, s = f // 2, s // 2
    return s == 0 and (a, b) == (first_root, second_root)


def check_head(case):
    body = {name: case[name] for name in ("log", "rootHash", "time", "treeSize")}
    signed = b"delegateos-log-head-v1\0" + canonical_bytes(body)
    valid = verify(decode(case["signature"]), signed, principal_key(case["log"]))
    return {"signedHex": signed.hex(), "valid": valid}


OPERATIONS = {
    "leaf": check_leaf,
    "inclusion": lambda case: {"valid": includes(case)},
    "consistency": lambda case: {"valid": extends(case)},
    "head": check_head,
}
