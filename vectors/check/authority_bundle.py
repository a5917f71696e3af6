"""Bundles of ExplainAuthority, checked only by the text of docs/explanations.md.

Usage: authority_bundle.py FILE ROOT [LOG]: a file with one bundle in each line, the platform's root, the principal
of its transparency log. It prints one line for each bundle. The exit status is 1 if a bundle has a fault.
"""

import hashlib
import json
import sys

from canonical_json import canonical, canonical_bytes
from keys_and_principals import decode, encode, principal_key, verify
from merkle_proofs import check_head, includes
from refusal import Refusal

TAG = b"delegateos-authoritystatement-v1\0"


def blake(data):
    return hashlib.blake2b(data, digest_size=32).digest()


def without_signature(document):
    return {name: value for name, value in document.items() if name != "signature"}


def is_signed(document, signer):
    return verify(decode(document["signature"]), blake(canonical_bytes(without_signature(document))), principal_key(signer))


def blocks_fault(statement):
    above = None
    blocks = statement["blocks"]
    for at, block in enumerate(blocks):
        if above and (
            block["delegator"] != above["delegatee"]
            or block["depth"] != above["depth"] + 1
            or block["expireTime"] > above["expireTime"]
        ):
            return f"block {at} does not follow from the block above"
        if "block" in block and encode(blake(canonical_bytes(block["block"]))) != block["revocationId"]:
            return f"block {at} has another digest"
        above = block
    if above and above["delegatee"] != statement["principal"]:
        return "the last block has another delegatee"
    for name in ("Then", "Now"):
        if statement[f"valid{name}"] != all(block[f"validity{name}"] == "valid" for block in blocks):
            return f"valid{name} is not what the blocks say"
    return None


def proofs_fault(bundle):
    proofs = {name: value for name, value in bundle.items() if name not in ("format", "statement", "signer", "signature")}
    if "proofs" not in bundle["statement"]:
        return None
    if encode(blake(canonical_bytes(proofs))) != bundle["statement"]["proofs"]:
        return "the statement names other proofs"
    return None


def receipt_fault(bundle):
    statement = bundle["statement"]
    if "receipt" not in bundle or "proofs" not in statement:
        return "the receipt, or the digest of the proofs, is missing"
    receipt, stated = bundle["receipt"], statement["receipt"]
    if receipt["receipt_id"] != statement["subjectId"] or receipt["request_id"] != stated["requestId"]:
        return "the receipt is another one"
    return None if stated["buyer"] == statement["principal"] else "the buyer does not hold the authority"


def tool_call_fault(statement):
    call = statement["toolCall"]
    if call["revocationIds"] != [block["revocationId"] for block in statement["blocks"]]:
        return "the call presented other blocks"
    if not call["decisions"] or call["allowed"] != all(one["allowed"] for one in call["decisions"]):
        return "the decisions on the call say something else"
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
    if bundle["format"] != "depute-authority-bundle/1":
        return "another format"
    statement = bundle["statement"]
    blocks = statement["blocks"]
    signed = blake(TAG + canonical_bytes(statement))
    if bundle["signer"] != root or not verify(decode(bundle["signature"]), signed, principal_key(root)):
        return "the statement is not signed by the root"
    faults = [proofs_fault(bundle), blocks_fault(statement)]
    kind = statement["kind"]
    if kind == "receipt":
        faults.append(receipt_fault(bundle))
    if kind == "tool_call":
        faults.append(tool_call_fault(statement))
    if kind == "attestation" and "attestation" not in bundle:
        faults.append("the attestation is missing")
    if "token" in bundle:
        faults.append(token_fault(bundle["token"], blocks))
    faults += [revocation_fault(entry, blocks) for entry in bundle["revocations"]]
    if "attestation" in bundle:
        faults.append(attestation_fault(bundle["attestation"], bundle.get("attestationProof"), blocks, log))
    return next((one for one in faults if one), None)


def verdict(text, root, log):
    """The first fault of a bundle's text, `valid` for none. A bundle that cannot be read is malformed."""
    try:
        return fault(json.loads(text), root, log) or "valid"
    except (Refusal, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return f"malformed: {error!r}"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        verdicts = [verdict(line, sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "") for line in file]
    print("\n".join(verdicts))
    sys.exit(0 if verdicts and all(one == "valid" for one in verdicts) else 1)
