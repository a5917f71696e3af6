"""Minting, attenuation and verification of tokens, from tokens.md."""

import token_form
from canonical_json import canonical
from keys_and_principals import decode, encode, principal_key, principal_of, sign, verify
from patterns import is_subset, matches, resource
from refusal import Refusal
from token_form import digest, milliseconds, revocation_ids, signed_value, write

DAY = 24 * 60 * 60 * 1000
SKEW = 30_000


def walk(token, sub_contracts):
    """Step 4 of the verification: returns the level after each block."""
    authority = token["authority"]
    remaining = authority["maxChainDepth"] - authority["chainDepth"]
    if remaining < 0:
        raise Refusal("chain_depth_exceeded")
    level = {
        "delegatee": authority["delegatee"],
        "capabilities": authority["capabilities"],
        "budget": authority["maxBudgetMicrocents"],
        "expires": milliseconds(authority["expiresAt"]),
        "contract": authority["contractId"],
        "delegation": authority["delegationId"],
        "depth": authority["chainDepth"],
        "remaining": remaining,
    }
    levels = [level]
    for block in token["attenuations"]:
        level = narrow(level, block, sub_contracts)
        levels.append(level)
    return levels


def narrow(above, block, sub_contracts):
    if block["attenuator"] != above["delegatee"]:
        raise Refusal("attenuation_violation", "attenuator")
    allowed = block.get("allowedCapabilities", above["capabilities"])
    if "allowedCapabilities" in block:
        for child in allowed:
            if not any(is_subset(child, parent) for parent in above["capabilities"]):
                raise Refusal("attenuation_violation", "capability")
    budget = block.get("maxBudgetMicrocents", above["budget"])
    expires = milliseconds(block["expiresAt"]) if "expiresAt" in block else above["expires"]
    if budget > above["budget"] or expires > above["expires"]:
        raise Refusal("attenuation_violation", "limit")
    if above["remaining"] == 0:
        raise Refusal("chain_depth_exceeded")
    remaining = block.get("maxChainDepth", above["remaining"] - 1)
    if remaining >= above["remaining"]:
        raise Refusal("attenuation_violation", "depth")
    contract = block["contractId"]
    if contract != above["contract"] and (contract, above["contract"]) not in sub_contracts:
        raise Refusal("contract_mismatch")
    return {
        "delegatee": block["delegatee"],
        "capabilities": allowed,
        "budget": budget,
        "expires": expires,
        "contract": contract,
        "delegation": block["delegationId"],
        "depth": above["depth"] + 1,
        "remaining": remaining,
    }


def check_revocations(token, ids, entries):
    """Step 2."""
    signers = [token["authority"]["issuer"], *(block["attenuator"] for block in token["attenuations"])]
    blocks = [token["authority"], *token["attenuations"]]
    for level, (block, own_id) in enumerate(zip(blocks, ids)):
        rightful = {*signers[: level + 1], block["delegatee"]}
        for entry in entries:
            body = {key: value for key, value in entry.items() if key != "signature"}
            if entry["revocationId"] != own_id or entry["revokedBy"] not in rightful:
                continue
            if verify(decode(entry["signature"]), digest(body), principal_key(entry["revokedBy"])):
                raise Refusal("revoked")


def check_signatures(token, trusted_roots):
    """Step 3."""
    issuer = token["authority"]["issuer"]
    signers = [issuer, *(block["attenuator"] for block in token["attenuations"])]
    if len(token["signatures"]) != len(signers) or issuer not in trusted_roots:
        raise Refusal("invalid_signature")
    for level, (signer, entry) in enumerate(zip(signers, token["signatures"])):
        covers = "authority" if level == 0 else level - 1
        message = digest(signed_value(token, level))
        if entry["signer"] != signer or entry["covers"] != covers:
            raise Refusal("invalid_signature")
        if not verify(decode(entry["signature"]), message, principal_key(signer)):
            raise Refusal("invalid_signature")


def verify_token(serialised, context):
    token = token_form.parse(serialised)
    ids = revocation_ids(token)
    check_revocations(token, ids, context.get("revocations", []))
    check_signatures(token, context["trustedRoots"])
    levels = walk(token, {tuple(pair) for pair in context.get("subContracts", [])})
    last = levels[-1]
    if last["depth"] > context.get("maxChainDepth", last["depth"]):
        raise Refusal("chain_depth_exceeded")
    issued = milliseconds(token["authority"]["issuedAt"])
    if issued > context["now"] + SKEW or levels[0]["expires"] - issued > DAY:
        raise Refusal("malformed_token", "lifetime")
    if context["now"] > last["expires"]:
        raise Refusal("expired")
    spent = context.get("spentMicrocents", {})
    rests = [level["budget"] - spent.get(own_id, 0) for level, own_id in zip(levels, ids)]
    if min(rests) <= 0:
        raise Refusal("budget_exceeded")
    check_contract(last, context)
    check_request(last, context.get("request"))
    scope = {
        "capabilities": last["capabilities"],
        "remainingBudgetMicrocents": min(rests),
        "chainDepth": last["depth"],
        "maxChainDepth": last["depth"] + last["remaining"],
        "contractId": last["contract"],
        "delegationId": last["delegation"],
        "issuer": token["authority"]["issuer"],
        "holder": last["delegatee"],
        "expiresAt": last["expires"],
    }
    return {"scope": scope, "revocationIds": ids}


def check_contract(last, context):
    """Step 8."""
    if context.get("contractId", last["contract"]) != last["contract"]:
        raise Refusal("contract_mismatch")
    granted = {(one["namespace"], one["action"]) for one in last["capabilities"]}
    for pair in context.get("requiredCapabilities", []):
        namespace, _, action = pair.rpartition(":")
        if (namespace, action) not in granted:
            raise Refusal("contract_mismatch")


def check_request(last, request):
    """Step 9."""
    if request is None:
        return
    resource(request["resource"], request["namespace"])
    for one in last["capabilities"]:
        if (one["namespace"], one["action"]) == (request["namespace"], request["action"]):
            if matches(one["resource"], request["resource"], one["namespace"]):
                return
    raise Refusal("capability_not_granted")


def check_mint(case):
    authority, seed = case["authority"], bytes.fromhex(case["seedHex"])
    token_form.check_authority(authority)
    token = {"format": token_form.FORMAT, "authority": authority, "attenuations": [], "signatures": []}
    message = digest(signed_value(token, 0))
    signature = encode(sign(seed, message))
    token["signatures"].append({"signer": principal_of(seed), "signature": signature, "covers": "authority"})
    return {
        "signedText": canonical(signed_value(token, 0)),
        "digestHex": message.hex(),
        "signature": signature,
        "token": write(token),
        "revocationIds": revocation_ids(token),
    }


def check_attenuate(case):
    token, seed, block = token_form.parse(case["token"]), bytes.fromhex(case["seedHex"]), case["block"]
    token["attenuations"].append(block)
    token_form.check_form(token)
    walk(token, set())
    level = len(token["attenuations"])
    message = digest(signed_value(token, level))
    signature = encode(sign(seed, message))
    token["signatures"].append({"signer": principal_of(seed), "signature": signature, "covers": level - 1})
    return {
        "digestHex": message.hex(),
        "signature": signature,
        "token": write(token),
        "revocationIds": revocation_ids(token),
    }


OPERATIONS = {
    "mint": check_mint,
    "attenuate": check_attenuate,
    "parse": lambda case: token_form.parse(case["token"]),
    "verify": lambda case: verify_token(case["token"], case["context"]),
    "match": lambda case: {"matches": matches(case["pattern"], case["resource"], case["namespace"])},
    "subset": lambda case: {"isSubset": is_subset(case["child"], case["parent"])},
}
