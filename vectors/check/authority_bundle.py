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


def content_differs(content, stated):
    """Whether the content of a block is not the one that the statement describes."""
    signer = content["issuer"] if "issuer" in content else content["attenuator"]
    same = ("delegatee", "delegationId", "contractId")
    return (
        encode(blake(canonical_bytes(content))) != stated["revocationId"]
        or signer != stated["delegator"]
        or any(content[name] != stated[name] for name in same)
    )


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
        if "block" in block and content_differs(block["block"], block):
            return f"block {at} has another digest, or other content than stated"
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


def attestation_fault(attestation, blocks):
    if attestation["principal"] != blocks[-1]["delegatee"] or not is_signed(attestation, attestation["principal"]):
        return "the attestation is not signed by the last delegatee"
    return None


def log_fault(attestation, proof, log):
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


def faults(bundle, root, log):
    """The checks of a bundle in order: the name of each, and its fault or None."""
    if bundle["format"] != "depute-authority-bundle/1":
        yield "form", "another format"
        return
    statement = bundle["statement"]
    blocks, kind = statement["blocks"], statement["kind"]
    signed = blake(TAG + canonical_bytes(statement))
    if bundle["signer"] != root or not verify(decode(bundle["signature"]), signed, principal_key(root)):
        yield "signature", "the statement is not signed by the root"
        return
    yield "proofs", proofs_fault(bundle)
    yield "blocks", blocks_fault(statement)
    if "token" in bundle:
        yield "token", token_fault(bundle["token"], blocks)
    for entry in bundle["revocations"]:
        yield "revocations", revocation_fault(entry, blocks)
    if "attestation" in bundle:
        yield "attestation", attestation_fault(bundle["attestation"], blocks)
        if "attestationProof" in bundle:
            yield "log", log_fault(bundle["attestation"], bundle["attestationProof"], log)
    elif kind == "attestation":
        yield "attestation", "the attestation is missing"
    if kind == "receipt":
        yield "receipt", receipt_fault(bundle)
    if kind == "tool_call":
        yield "tool_call", tool_call_fault(statement)


def first_fault(bundle, root, log):
    """The name of the first check that fails, and its fault; None for a valid bundle."""
    return next(((name, found) for name, found in faults(bundle, root, log) if found), None)


def verdict(text, root, log):
    """The first fault of a bundle's text, `valid` for none. A bundle that cannot be read is malformed."""
    try:
        found = first_fault(json.loads(text), root, log)
    except (Refusal, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return f"malformed: {error!r}"
    return "valid" if found is None else f"{found[0]}: {found[1]}"


def check_bundle(given):
    found = first_fault(given["bundle"], given["roots"][0], "")
    if found:
        raise Refusal(found[0])
    return {"valid": True}


OPERATIONS = {"verify": check_bundle}


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        verdicts = [verdict(line, sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "") for line in file]
    print("\n".join(verdicts))
    sys.exit(0 if verdicts and all(one == "valid" for one in verdicts) else 1)
