"""The form of a token: `parse` of tokens.md."""

import datetime
import json
import re

from canonical_json import canonical, canonical_bytes
from keys_and_principals import blake2b, decode, encode, principal_key
from patterns import pattern
from refusal import Refusal

FORMAT = "delegateos-sjt-v1"
NO_PARENT = "del_000000000000"
TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{3}))?Z", re.ASCII)


def malformed(problem):
    raise Refusal("malformed_token", problem)


def milliseconds(text):
    """The time of a text, in milliseconds since 1970."""
    found = TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        malformed("time")
    try:
        time = datetime.datetime(*map(int, found.groups()[:6]), tzinfo=datetime.timezone.utc)
    except ValueError:
        malformed("time")
    since = time - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1000 + int(found[7] or 0)


def count(value):
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        malformed("count")


def identifier(prefix):
    form = re.compile(f"{prefix}_[0-9a-f]{{12}}")

    def check(value):
        if not isinstance(value, str) or form.fullmatch(value) is None:
            malformed("identifier")

    return check


def delegation(value):
    identifier("del")(value)
    if value == NO_PARENT:
        malformed("reserved")


def name(value):
    if not isinstance(value, str) or re.fullmatch("[a-z0-9_.:-]{1,64}", value) is None:
        malformed("name")


def text(value):
    if not isinstance(value, str):
        malformed("text")


def signature_text(value):
    if not isinstance(value, str) or len(value) != 86:
        malformed("signature")
    decode(value)


def covers(value):
    if value != "authority":
        count(value)


def members(value, required, optional=()):
    if not isinstance(value, dict):
        malformed("object")
    checks = {**required, **dict(optional)}
    if not set(required) <= set(value) <= set(checks):
        malformed("members")
    for key, member in value.items():
        checks[key](member)


def items(value, check, most):
    if not isinstance(value, list):
        malformed("array")
    if len(value) > most:
        raise Refusal("token_too_large")
    for item in value:
        check(item)


def capability(value):
    members(value, {"namespace": name, "action": name, "resource": text})
    if len(value["resource"].encode("utf-16-be", "surrogatepass")) // 2 > 1024:
        raise Refusal("token_too_large")
    pattern(value["resource"], value["namespace"])


def capabilities(value):
    items(value, capability, 64)


AUTHORITY = {
    **dict.fromkeys(("issuer", "delegatee"), principal_key),
    "capabilities": capabilities,
    "contractId": identifier("ct"),
    "delegationId": delegation,
    "parentDelegationId": identifier("del"),
    **dict.fromkeys(("chainDepth", "maxChainDepth", "maxBudgetMicrocents"), count),
    **dict.fromkeys(("expiresAt", "issuedAt"), milliseconds),
}
ATTENUATION = {
    **dict.fromkeys(("attenuator", "delegatee"), principal_key),
    "delegationId": delegation,
    "contractId": identifier("ct"),
}
LIMITS = {
    "allowedCapabilities": capabilities,
    "maxBudgetMicrocents": count,
    "expiresAt": milliseconds,
    "maxChainDepth": count,
}
SIGNATURE = {"signer": principal_key, "signature": signature_text, "covers": covers}


def check_authority(authority):
    members(authority, AUTHORITY)
    if (authority["parentDelegationId"] == NO_PARENT) != (authority["chainDepth"] == 0):
        malformed("depth of a root")
    if authority["delegationId"] == authority["parentDelegationId"]:
        malformed("its own parent")
    if milliseconds(authority["expiresAt"]) <= milliseconds(authority["issuedAt"]):
        malformed("lifetime")


def check_attenuation(block):
    members(block, ATTENUATION, LIMITS.items())


def check_form(token):
    def form(value):
        if value != FORMAT:
            malformed("format")

    parts = {
        "format": form,
        "authority": check_authority,
        "attenuations": lambda value: items(value, check_attenuation, 32),
        "signatures": lambda value: items(value, lambda entry: members(entry, SIGNATURE), 33),
    }
    members(token, parts)
    authority = token["authority"]
    ids = [authority["parentDelegationId"], authority["delegationId"]]
    ids += [block["delegationId"] for block in token["attenuations"]]
    if len(set(ids)) != len(ids):
        malformed("delegation id twice")


def parse(serialised):
    """The token that a text contains."""
    if not isinstance(serialised, str):
        malformed("text")
    if len(serialised) > 16_000:
        raise Refusal("token_too_large")
    try:
        written = decode(serialised).decode("utf-8")
        token = json.loads(written)
    except (ValueError, RecursionError):
        malformed("JSON")
    check_form(token)
    if canonical(token) != written:
        malformed("not canonical")
    return token


def write(token):
    return encode(canonical_bytes(token))


def digest(value):
    return blake2b(canonical_bytes(value))


def revocation_ids(token):
    return [encode(digest(block)) for block in [token["authority"], *token["attenuations"]]]


def signed_value(token, level):
    """The value that the signature of a block covers; level 0 is the authority."""
    if level == 0:
        return {"authority": token["authority"]}
    return {"attenuations": token["attenuations"][:level], "authority": token["authority"]}
