"""Bundles of ExplainAuthority, checked only by the text of docs/explanations.md.

Usage: authority_bundle.py FILE ROOT [LOG]: the bundle, the platform's root, the principal of its
transparency log.
"""

import hashlib
import json
import sys

from canonical_json import canonical, canonical_bytes
from keys_and_principals import decode, encode, principal_key, verify
from merkle_proofs import check_head, includes

TAG = b"delegateos-authoritystatement-v1\0"


def blake(data):
    return hashlib.blake2b(data, digest_size=32).digest()


def without_signature(document):
    return {name: value for name, value in document.items() if name != "signature"}


def is_signed(document, signer):
    return verify(decode(document["signature"]), blake(canonical_bytes(without_signature(document))), principal_key(signer))


def blocks_fault(blocks):
    above = None
    for at, block in enumerate(blocks):
        if above and (block["delegator"] != above["delegatee"] or block["expireTime"] > above["expireTime"]):
            return f"block {at} does not follow from the block above"
        if "block" in block and encode(blake(canonical_bytes(block["block"]))) != block["revocationId"]:
            return f"block {at} has another digest"
        above = block
    return None


def token_fault(text, blocks):
    token = json.loads(decode(text))
    documents = [token["authority"], *token["attenuations"]]
    if [encode(blake(canonical_bytes(one))) for one in documents] != [one["revocationId"] for one in blocks]:
        return "the token has other blocks"
    for level, entry in enumerate(token["signatures"]):
        covered = {"authority": token["authority"]}
        if level:
            covered["attenuations"] = token["attenuations"][:level]
        if not verify(decode(entry["signature"]), blake(canonical_bytes(covered)), principal_key(blocks[level]["delegator"])):
            return f"block {level} of the token is not signed by its delegator"
    return None


def revocation_fault(entry, blocks):
    at = next((i for i, one in enumerate(blocks) if one["revocationId"] == entry["revocationId"]), None)
    if at is None or blocks[at]["validityNow"] != "revoked":
        return "a revocation of no revoked block"
    rightful = [one["delegator"] for one in blocks[: at + 1]] + [blocks[at]["delegatee"]]
    if entry["revokedBy"] not in rightful or not is_signed(entry, entry["revokedBy"]):
        return "a revocation without right or signature"
    return None


def attestation_fault(attestation, proof, blocks, log):
    if attestation["principal"] != blocks[-1]["delegatee"] or not is_signed(attestation, attestation["principal"]):
        return "the attestation is not signed by the last delegatee"
    if proof is None:
        return None
    head = proof["head"]
    if head["log"] != log or not check_head(head)["valid"]:
        return "the head of the log is not signed by the trusted log"
    digest = encode(hashlib.sha256(canonical_bytes(attestation)).digest())
    leaf = canonical({"digest": digest, "kind": "attestation", "time": proof["time"]}).encode()
    case = {
        "index": proof["index"],
        "treeSize": head["treeSize"],
        "leafHex": hashlib.sha256(b"\0" + leaf).hexdigest(),
        "proofHex": [decode(one).hex() for one in proof["hashes"]],
        "rootHex": decode(head["rootHash"]).hex(),
    }
    return None if includes(case) else "the log does not contain the attestation"


def fault(bundle, root, log):
    """The first fault of a bundle; None for a valid one."""
    statement = bundle["statement"]
    blocks = statement["blocks"]
    signed = blake(TAG + canonical_bytes(statement))
    if bundle["signer"] != root or not verify(decode(bundle["signature"]), signed, principal_key(root)):
        return "the statement is not signed by the root"
    faults = [blocks_fault(blocks)]
    if "token" in bundle:
        faults.append(token_fault(bundle["token"], blocks))
    faults += [revocation_fault(entry, blocks) for entry in bundle["revocations"]]
    if "attestation" in bundle:
        faults.append(attestation_fault(bundle["attestation"], bundle.get("attestationProof"), blocks, log))
    return next((one for one in faults if one), None)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        found = fault(json.load(file), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
    print(found or "valid")
    sys.exit(1 if found else 0)
