"""The package gives the answer of each test vector, with its own code."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any, Callable

import pytest
from google.protobuf import json_format

from depute import _contracts, agenta, encodings, transcripts, transparency
from depute._globs import PatternProblem, matches, parse_pattern, parse_resource
from depute._targets import is_same_target, proof_target
from depute.asp import TAG, canonical_envelope, envelope_digest, sign_envelope, verify_envelope
from depute.canonical import (
    CanonicalError,
    blake2b_256,
    canonical_json,
    parse_strict_json,
    version_digest,
    version_hash,
)
from depute.denials import TokenError
from depute.dsse import open_envelope, sign_payload, signed_bytes
from depute.keys import Keypair, agree, is_admissible, parse_principal, verify
from depute.objects import object_digest, sign_object, verify_object
from depute.proofs import (
    AcceptedProof,
    ProofMemory,
    arguments_digest,
    check_proof,
    create_proof,
    thumbprint,
)
from depute.sessions import (
    CallerSession,
    HolderSession,
    ReplayWindow,
    SessionRequest,
    SessionTerms,
    open_session,
)
from depute.tokens import Token, is_subset, signed_digest, verify_token
from depute.values import from_message, to_message

VECTORS = Path(os.environ.get("DEPUTE_VECTORS") or Path(__file__).parents[3] / "vectors")


class Refused(Exception):
    """The package refuses the input of a test vector."""


def sha256(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def canonicalize(json: str) -> Any:
    try:
        text = canonical_json(parse_strict_json(json))
    except (CanonicalError, ValueError, RecursionError):
        raise Refused("no_canonical_form") from None
    data = text.encode()
    return {
        "canonical": text,
        "utf8Hex": data.hex(),
        "sha256Hex": sha256(data),
        "blake2b256Hex": blake2b_256(data).hex(),
    }


def version(input: Any, output: Any) -> Any:
    return {
        "digestHex": version_digest(input, output),
        "hash8": version_hash(input, output),
        "hash16": version_hash(input, output, 16),
    }


def names_version(hash: str, digestHex: str) -> Any:
    from depute.canonical import is_of_version

    return {"names": is_of_version(hash, digestHex)}


def decode_base64url(text: str) -> Any:
    data = encodings.decode(text)
    if data is None:
        raise Refused("malformed_token")
    return {"hex": data.hex()}


def keypair(seedHex: str) -> Any:
    pair = Keypair.from_seed(bytes.fromhex(seedHex))
    public = parse_principal(pair.principal)
    assert public is not None
    return {
        "publicKeyHex": public.hex(),
        "principal": pair.principal,
        "thumbprint": thumbprint(pair.principal),
    }


def sign(seedHex: str, messageHex: str) -> Any:
    pair = Keypair.from_seed(bytes.fromhex(seedHex))
    return {"signature": encodings.encode(pair.sign(bytes.fromhex(messageHex)))}


def verify_signature(publicKeyHex: str, messageHex: str, signatureHex: str) -> Any:
    key, message, signature = map(bytes.fromhex, (publicKeyHex, messageHex, signatureHex))
    return {"valid": verify(signature, message, key)}


def principal(principal: Any) -> Any:
    key = parse_principal(principal)
    if key is None:
        raise Refused("malformed_token")
    return {"publicKeyHex": key.hex(), "admissible": is_admissible(principal)}


def blake2b(dataHex: str, keyHex: str) -> Any:
    data = bytes.fromhex(dataHex)
    return {
        "unkeyedHex": blake2b_256(data).hex(),
        "keyedHex": blake2b_256(data, key=bytes.fromhex(keyHex)).hex(),
    }


def mint(seedHex: str, authority: dict[str, Any]) -> Any:
    token = Token.mint(
        Keypair.from_seed(bytes.fromhex(seedHex)),
        delegatee=authority["delegatee"],
        capabilities=authority["capabilities"],
        contract_id=authority["contractId"],
        max_budget_microcents=authority["maxBudgetMicrocents"],
        max_chain_depth=authority["maxChainDepth"],
        delegation_id=authority["delegationId"],
        parent_delegation_id=authority["parentDelegationId"],
        chain_depth=authority["chainDepth"],
        issued_at=authority["issuedAt"],
        expires_at=authority["expiresAt"],
    )
    return {"signedText": canonical_json({"authority": authority}), **signed(token)}


def attenuate(token: str, seedHex: str, block: dict[str, Any]) -> Any:
    longer = Token.parse(token).attenuate(
        Keypair.from_seed(bytes.fromhex(seedHex)),
        delegatee=block["delegatee"],
        delegation_id=block["delegationId"],
        contract_id=block["contractId"],
        allowed_capabilities=block.get("allowedCapabilities"),
        max_budget_microcents=block.get("maxBudgetMicrocents"),
        expires_at=block.get("expiresAt"),
        max_chain_depth=block.get("maxChainDepth"),
    )
    return signed(longer)


def signed(token: Token) -> dict[str, Any]:
    document = token.document
    return {
        "digestHex": signed_digest(document["authority"], document["attenuations"]).hex(),
        "signature": document["signatures"][-1]["signature"],
        "token": token.text,
        "revocationIds": token.revocation_ids,
    }


def parse(token: Any) -> Any:
    return Token.parse(token).document


def verify_chain(token: Any, context: dict[str, Any]) -> Any:
    entries = [one for one in context.get("revocations", ()) if is_signed(one)]
    spent = context.get("spentMicrocents", {})
    pairs = [tuple(pair) for pair in context.get("subContracts", ())]
    verified = verify_token(
        token,
        trusted_roots=context["trustedRoots"],
        holder="proved",
        now=context["now"],
        is_revoked=lambda block, rightful: any(
            one["revocationId"] == block and one["revokedBy"] in rightful for one in entries
        ),
        spent_microcents=lambda block: spent.get(block, 0),
        request=context.get("request"),
        contract_id=context.get("contractId"),
        required_capabilities=context.get("requiredCapabilities", ()),
        sub_contract=lambda child, parent: (child, parent) in pairs,
        max_chain_depth=context.get("maxChainDepth"),
    )
    return {"scope": verified.scope, "revocationIds": verified.token.revocation_ids}


def is_signed(entry: Any) -> bool:
    try:
        verify_object("revocation", entry)
    except TokenError:
        return False
    return True


def match(namespace: str, pattern: str, resource: str) -> Any:
    try:
        return {"matches": matches(parse_pattern(pattern, namespace), parse_resource(resource, namespace))}
    except PatternProblem:
        raise Refused("invalid_resource") from None


def subset(parent: dict[str, str], child: dict[str, str]) -> Any:
    return {"isSubset": is_subset(child, parent)}


def target(publicUrl: str, **request: str) -> Any:
    if request["protocol"] == "http":
        path, htm = request["path"], request["httpMethod"]
    else:
        path = f"/{request['service']}/{request['method']}"
        htm = "GET" if request["protocol"] == "connect-get" else "POST"
    return {"htm": htm, "htu": proof_target(publicUrl, path)}


def create(seedHex: str, **claims: Any) -> Any:
    proof = create_proof(Keypair.from_seed(bytes.fromhex(seedHex)), **claims)
    header, payload = (encodings.decode(part) or b"" for part in proof.split(".")[:2])
    return {"header": header.decode(), "payload": payload.decode(), "proof": proof}


def check(proof: Any, expected: dict[str, Any]) -> Any:
    return accepted(check_proof(proof, **expected))


def accepted(proof: AcceptedProof) -> dict[str, Any]:
    facts = {
        "jti": proof.jti,
        "principal": proof.principal,
        "thumbprint": proof.thumbprint,
        "issuedAt": proof.issued_at,
        "expiresAt": proof.expires_at,
    }
    return facts if proof.counter is None else {**facts, "counter": proof.counter}


def check_in_order(htm: str, htu: str, presentations: list[dict[str, Any]]) -> Any:
    memory, answers = ProofMemory(), []
    for one in presentations:
        try:
            memory.use(check_proof(one["proof"], htm=htm, htu=htu, now=one["now"]), one["now"])
            answers.append("accepted")
        except TokenError as error:
            answers.append(error.type)
    return {"answers": answers}


def open_holder_session(**given: Any) -> Any:
    seeds = {name: bytes.fromhex(given.pop(name)) for name in list(given) if name.endswith("Hex")}
    holder, own, verifier, signer = (
        Keypair.from_seed(seeds[f"{name}Hex"])
        for name in ("seed", "holderSeed", "verifierSeed", "signerSeed")
    )
    end = given.pop("expiresAt")
    asked = SessionRequest(holder, ephemeral=own, **given)
    jti = given.pop("jti")
    assert jti in str(encodings.decode(asked.proof.split(".")[1]))
    session, grant = open_session(
        asked.proof,
        not_after=end,
        verifier=signer,
        ephemeral=verifier,
        id=encodings.encode(seeds["idHex"]),
        **given,
    )
    shared = agree(own.seed, parse_principal(verifier.principal) or b"")
    assert shared is not None
    # Both sides compute the same key.
    caller = asked.accept(grant, signer.principal)
    assert caller._key == session._key
    with pytest.raises(TokenError):
        asked.accept(grant, holder.principal)
    return {
        "proof": asked.proof,
        "termsHex": session.terms.bytes().hex(),
        "sharedHex": shared.hex(),
        "keyHex": session._key.hex(),
        "grant": grant,
    }


def prove(keyHex: str, id: str, counter: int, **call: Any) -> Any:
    terms = SessionTerms(id, "", None, "", 2**53, "", "")
    session = CallerSession(terms, bytes.fromhex(keyHex))
    session._counter = counter - 1
    return {"proof": session.prove(**call)}


def check_call(keyHex: str, terms: dict[str, Any], proof: Any, expected: dict[str, Any], **more: Any) -> Any:
    session = HolderSession(
        SessionTerms(
            terms["id"],
            terms["principal"],
            terms["ath"],
            terms["audience"],
            terms["expiresAt"],
            terms["holderKey"],
            terms["verifierKey"],
        ),
        bytes.fromhex(keyHex),
    )
    for counter in more.get("used", ()):
        session.use(counter)
    return accepted(session.check(proof, **expected))


def window(counters: list[int]) -> Any:
    window = ReplayWindow()
    return {"used": [window.use(counter) for counter in counters]}


def asp_document(message: dict[str, Any]) -> Any:
    parsed = json_format.ParseDict(message, _contracts.new("asp.v0.Envelope"))
    document = from_message(parsed)
    # Converting the document back gives the same message.
    assert to_message("asp.v0.Envelope", document) == parsed
    return {"document": document}


def asp_sign(seedHex: str, document: dict[str, Any]) -> Any:
    signed = sign_envelope(document, Keypair.from_seed(bytes.fromhex(seedHex)))
    digest = envelope_digest(document)
    return {
        "canonical": canonical_envelope(document),
        "signedHex": (TAG + digest).hex(),
        "hash": signed["integrity"]["hash"],
        "signature": signed["integrity"]["signature"],
    }


def asp_verify(document: dict[str, Any], publicKey: str) -> Any:
    try:
        verify_envelope(document, publicKey)
    except TokenError:
        return {"valid": False}
    return {"valid": True}


def sign_attestation(seedHex: str, body: dict[str, Any]) -> Any:
    signed = sign_object("attestation", body, Keypair.from_seed(bytes.fromhex(seedHex)))
    return {
        "canonical": canonical_json(body),
        "digestHex": object_digest(body).hex(),
        "signature": signed["signature"],
    }


def verify_attestation(attestation: Any) -> Any:
    try:
        verify_object("attestation", attestation)
    except TokenError as error:
        raise Refused(error.type.removesuffix("_token")) from None
    return {"valid": True}


def dsse_envelope(seedHex: str, payloadType: str, payloadHex: str) -> Any:
    signer, payload = Keypair.from_seed(bytes.fromhex(seedHex)), bytes.fromhex(payloadHex)
    envelope = sign_payload(payload, signer, payloadType)
    assert open_envelope(envelope, signer.principal, payloadType) == payload
    with pytest.raises(TokenError):
        open_envelope(envelope, Keypair.from_seed(bytes(32)).principal, payloadType)
    return {"signedHex": signed_bytes(payloadType, payload).hex(), "envelope": canonical_json(envelope)}


def log_leaf(kind: str, digest: str, time: int) -> Any:
    data = transparency.leaf(kind, digest, time)
    return {"leaf": data.decode(), "hashHex": transparency.leaf_hash(data).hex()}


def inclusion(index: int, treeSize: int, leafHex: str, rootHex: str, proofHex: list[str]) -> Any:
    leaf, root, *proof = map(bytes.fromhex, (leafHex, rootHex, *proofHex))
    return {"valid": transparency.verify_inclusion(index, treeSize, leaf, root, proof)}


def consistency(
    firstSize: int, firstRootHex: str, secondSize: int, secondRootHex: str, proofHex: list[str]
) -> Any:
    first, second, *proof = map(bytes.fromhex, (firstRootHex, secondRootHex, *proofHex))
    valid = transparency.verify_consistency(firstSize, first, secondSize, second, proof)
    return {"valid": valid}


def head(log: str, treeSize: int, rootHash: str, time: int, signature: str) -> Any:
    return {
        "signedHex": transparency.head_bytes(log, treeSize, rootHash, time).hex(),
        "valid": transparency.verify_head(log, treeSize, rootHash, time, signature),
    }


def transcript_head(transcript: dict[str, Any]) -> Any:
    document = transcripts.session_head(transcript)
    text = canonical_json(document)
    return {"recordHash": document["recordHash"], "head": text, "digestHex": sha256(text.encode())}


def transcript_seal(transcript: dict[str, Any], seedHex: str) -> Any:
    pair = Keypair.from_seed(bytes.fromhex(seedHex))
    signed = transcripts.sealed_bytes(transcript, pair.principal)
    signature = f"ed25519:{pair.sign(signed).hex()}"
    return {"key": pair.principal, "signedHex": signed.hex(), "signature": signature}


def transcript_verify(transcript: dict[str, Any], sealKeys: list[str], logKeys: list[str]) -> Any:
    try:
        transcripts.verify_seal(transcript, seal_keys=sealKeys, log_keys=logKeys)
    except transcripts.SealError as error:
        raise Refused(error.code) from None
    return {"sealed": True}


def agenta_offer(offer: dict[str, Any]) -> Any:
    return {"canonical": agenta.offer_content(offer), "digestHex": agenta.offer_digest(offer)}


def agenta_callback(seedHex: str, url: str, contentType: str, body: str, created: int) -> Any:
    pair = Keypair.from_seed(bytes.fromhex(seedHex))
    digest = agenta.content_digest(body.encode())
    params = agenta.signature_params(created, thumbprint(pair.principal))
    base = agenta.signature_base(url, contentType, digest, params)
    signature = base64.b64encode(pair.sign(base.encode())).decode()
    return {
        "contentDigest": digest,
        "signatureInput": f"depute={params}",
        "base": base,
        "signature": f"depute=:{signature}:",
    }


#: The functions that compute the answers, by file and operation.
ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "canonical-json": {
        "canonicalize": canonicalize,
        "version-hash": version,
        "names-version": names_version,
    },
    "keys-and-principals": {
        "decode-base64url": decode_base64url,
        "keypair": keypair,
        "sign": sign,
        "verify": verify_signature,
        "principal": principal,
        "blake2b": blake2b,
    },
    "tokens": {
        "mint": mint,
        "attenuate": attenuate,
        "parse": parse,
        "verify": verify_chain,
        "match": match,
        "subset": subset,
    },
    "holder-proofs": {
        "target": target,
        "create": create,
        "arguments-digest": lambda arguments: {"ard": arguments_digest(arguments)},
        "check": check,
        "same-target": lambda claimed, htu: {"isSame": is_same_target(claimed, htu)},
        "check-in-order": check_in_order,
    },
    "holder-sessions": {
        "open": open_holder_session,
        "prove": prove,
        "check": check_call,
        "window": window,
    },
    "attestations": {"sign": sign_attestation, "verify": verify_attestation},
    "dsse": {"envelope": dsse_envelope},
    "merkle-proofs": {
        "leaf": log_leaf,
        "inclusion": inclusion,
        "consistency": consistency,
        "head": head,
    },
    "asp-envelopes": {"document": asp_document, "sign": asp_sign, "verify": asp_verify},
    "transcripts": {
        "entry-hash": lambda entry: {"hash": transcripts.entry_hash(entry)},
        "head": transcript_head,
        "seal": transcript_seal,
        "verify-seal": transcript_verify,
    },
    "agenta-digests": {"offer-digest": agenta_offer, "callback": agenta_callback},
}


def cases() -> list[Any]:
    found = []
    for name, operations in ANSWERS.items():
        file = json.loads((VECTORS / f"{name}.json").read_text("utf-8"))
        for case in file["cases"]:
            answer = operations[case["operation"]]
            found.append(pytest.param(answer, case, id=f"{name}: {case['name']}"))
    return found


@pytest.mark.parametrize(("answer", "case"), cases())
def test_vector(answer: Callable[..., Any], case: dict[str, Any]) -> None:
    try:
        actual = answer(**case["input"])
    except Refused as refused:
        assert str(refused) == case.get("refusal")
    except TokenError as error:
        assert error.type == case.get("refusal"), error
        assert error.detail == case.get("fault", error.detail)
    else:
        assert actual == case.get("expected")
