"""Attestations, from attestations.md."""

from canonical_json import canonical
from keys_and_principals import blake2b, decode, encode, principal_key, sign, verify
from refusal import Refusal
from token_form import count, identifier, items, malformed, members, milliseconds, signature_text


def one_of(*words):
    def check(value):
        if value not in words or not isinstance(value, str):
            malformed("word")

    return check


def number(most):
    def check(value):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
            malformed("number")

    return check


def text(most):
    def check(value):
        if not isinstance(value, str) or len(value.encode("utf-16-be", "surrogatepass")) // 2 > most:
            malformed("text")

    return check


def boolean(value):
    if not isinstance(value, bool):
        malformed("boolean")


def outcome(value):
    optional = {"score": number(1), "details": text(100_000)}
    members(value, {"method": text(100), "passed": boolean}, optional.items())


def result(value):
    optional = {"output": lambda _: None, "outputHash": text(200), "verificationOutcome": outcome}
    required = {"success": boolean, "costMicrocents": count, "durationMs": number(2**53 - 1)}
    members(value, required, optional.items())


FORM = {
    "id": identifier("att"),
    "version": one_of("0.1"),
    "contractId": identifier("ct"),
    "delegationId": identifier("del"),
    "principal": principal_key,
    "createdAt": milliseconds,
    "type": one_of("completion", "delegation_verification"),
    "result": result,
    "childAttestations": lambda value: items(value, identifier("att"), 1000),
    "signature": signature_text,
}


def digest_of(attestation):
    written = canonical({key: value for key, value in attestation.items() if key != "signature"})
    return written, blake2b(written.encode())


def check_sign(case):
    written, digest = digest_of(case["body"])
    signature = encode(sign(bytes.fromhex(case["seedHex"]), digest))
    return {"canonical": written, "digestHex": digest.hex(), "signature": signature}


def check_verify(case):
    attestation = case["attestation"]
    try:
        members(attestation, FORM)
    except Refusal as refusal:
        raise Refusal("malformed") from refusal
    _, digest = digest_of(attestation)
    if not verify(decode(attestation["signature"]), digest, principal_key(attestation["principal"])):
        raise Refusal("invalid_signature")
    return {"valid": True}


OPERATIONS = {"sign": check_sign, "verify": check_verify}
