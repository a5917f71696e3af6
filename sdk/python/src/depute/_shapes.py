"""Functions that check JSON values. For an invalid value they raise TokenError with the path and the fault."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any, Callable

from . import encodings
from ._globs import (
    MAX_RESOURCE_CHARS,
    PatternProblem,
    is_well_formed,
    parse_pattern,
    utf16_length,
)
from .denials import TokenError
from .keys import is_principal

Shape = Callable[[Any, str], None]

MAX_ATTENUATIONS = 32
MAX_CAPABILITIES = 64
MAX_NAME_CHARS = 64
FORMAT = "delegateos-sjt-v1"
#: The parentDelegationId of a root delegation.
ROOT_DELEGATION_ID = "del_000000000000"

_MAX_SAFE = 2**53 - 1
_IDS = {kind: re.compile(rf"{kind}_[0-9a-f]{{12}}\Z") for kind in ("ct", "del", "att")}
_NAME = re.compile(r"[a-z0-9_.:-]+\Z")
_CUSTOM = re.compile(r"[a-z0-9_.-]+:[a-z0-9_.-]+(:[a-z0-9_.-]+)*\Z")
_TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{3})?Z\Z")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

#: The registered namespaces and their actions. (DelegateOS 12)
NAMESPACES: dict[str, frozenset[str]] = {
    "web": frozenset({"search", "fetch", "browse"}),
    "docs": frozenset({"read", "write", "delete"}),
    "code": frozenset({"execute", "analyze", "test"}),
    "llm": frozenset({"generate", "embed", "classify"}),
    "data": frozenset({"query", "insert", "update", "delete"}),
    "compute": frozenset({"spawn", "execute"}),
}


def parse_time(text: Any) -> int | None:
    """Milliseconds since 1970 of `YYYY-MM-DDTHH:MM:SSZ` or `YYYY-MM-DDTHH:MM:SS.sssZ`; None for any other text."""
    match = _TIME.match(text) if isinstance(text, str) else None
    if match is None:
        return None
    year, *rest = (int(part) for part in match.groups()[:6])
    # Python's calendar has no year 0; the year 400 has the same one, 146,097 days later.
    shift = 400 if year == 0 else 0
    try:
        moment = datetime(year + shift, *rest, tzinfo=timezone.utc)  # type: ignore[arg-type,misc]
    except ValueError:
        return None
    elapsed = moment - _EPOCH - timedelta(days=146_097 if shift else 0)
    return elapsed // timedelta(milliseconds=1) + int((match[7] or ".0")[1:])


def format_time(ms: int) -> str:
    """The text of a time, as `2026-02-17T12:00:00.000Z`."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".rjust(24, "0")


def malformed(path: str, problem: str) -> TokenError:
    return TokenError("malformed_token", f"{path}: {problem}" if path else problem)


def object_of(required: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Shape:
    """A check for an object with exactly these members: nothing missing, nothing unknown, null nowhere."""
    members = {**required, **(optional or {})}

    def check(value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise malformed(path, "not an object")
        if any(key not in members for key in value):
            raise malformed(path, "unknown member")
        for key in required:
            if key not in value:
                raise malformed(_join(path, key), "missing")
        for key, shape in members.items():
            if key in value:
                shape(value[key], _join(path, key))

    return check


def array_of(item: Shape, most: int, too_long: str = "malformed_token") -> Shape:
    """A check for an array of at most `most` items that `item` accepts."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, list):
            raise malformed(path, "not an array")
        if len(value) > most:
            raise TokenError(too_long, f"{path}: more than {most} items")
        for index, member in enumerate(value):
            item(member, f"{path}[{index}]")

    return check


def that(problem: str, accepts: Callable[[Any], bool]) -> Shape:
    """A check for a value that `accepts` accepts."""

    def check(value: Any, path: str) -> None:
        if not accepts(value):
            raise malformed(path, problem)

    return check


def text_of(most: int) -> Shape:
    """A check for a text of at most `most` UTF-16 code units, without lone surrogates."""
    return that(
        f"not a text of at most {most} characters",
        lambda value: isinstance(value, str) and utf16_length(value) <= most and is_well_formed(value),
    )


def one_of(*words: str) -> Shape:
    """A check for a text that is one of `words`."""
    return that(f"not {' or '.join(words)}", lambda value: isinstance(value, str) and value in words)


def is_id(kind: str, value: Any) -> bool:
    """Whether a value is an identifier of a kind: `ct`, `del` or `att`."""
    return isinstance(value, str) and _IDS[kind].match(value) is not None


def id_of(kind: str) -> Shape:
    """A check for an identifier of a kind."""
    return that(f"not a {kind}_ identifier", lambda value: is_id(kind, value))


def is_count(value: Any) -> bool:
    """Whether a value is an integer from 0 to 2^53 - 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value <= _MAX_SAFE and value == int(value)


def is_name(value: Any) -> bool:
    """Whether a value can be a namespace or an action."""
    return isinstance(value, str) and len(value) <= MAX_NAME_CHARS and _NAME.match(value) is not None


def is_known_capability(namespace: str, action: str) -> bool:
    """Whether a namespace and its action are registered, or the namespace is a custom `org:namespace`."""
    actions = NAMESPACES.get(namespace)
    if actions is not None:
        return action in actions
    return (
        is_name(namespace) and _CUSTOM.match(namespace) is not None and is_name(action) and ":" not in action
    )


def split_requirement(text: Any) -> tuple[str, str] | None:
    """The two parts of `namespace:action`, split at the last colon."""
    if not isinstance(text, str):
        return None
    namespace, _, action = text.rpartition(":")
    return (namespace, action) if is_name(namespace) and is_name(action) else None


principal = that("not a principal", is_principal)
count = that("not an integer from 0 to 2^53-1", is_count)
time = that("not a time YYYY-MM-DDTHH:MM:SS(.sss)Z", lambda value: parse_time(value) is not None)
signature = that(
    "not a signature",
    lambda value: isinstance(value, str) and len(value) == 86 and encodings.decode(value) is not None,
)
digest = that(
    "not a digest",
    lambda value: isinstance(value, str) and len(value) == 43 and encodings.decode(value) is not None,
)
boolean = that("not a boolean", lambda value: isinstance(value, bool))
any_object = that("not an object", lambda value: isinstance(value, dict))


def anything(value: Any, path: str) -> None:
    """Any value."""


_name = that("not a name of a-z 0-9 _ . : -", is_name)
_capability_members = object_of(
    {
        "namespace": _name,
        "action": _name,
        "resource": that("not text", lambda value: isinstance(value, str)),
    }
)


def _capability(value: Any, path: str) -> None:
    _capability_members(value, path)
    if utf16_length(value["resource"]) > MAX_RESOURCE_CHARS:
        raise TokenError("token_too_large", f"{path}.resource")
    try:
        parse_pattern(value["resource"], value["namespace"])
    except PatternProblem as problem:
        raise TokenError("invalid_resource", f"{path}.resource: {problem}") from None


_capabilities = array_of(_capability, MAX_CAPABILITIES, "token_too_large")


def _delegation_id(value: Any, path: str) -> None:
    id_of("del")(value, path)
    if value == ROOT_DELEGATION_ID:
        raise TokenError("malformed_token", f"{path}: reserved for the parent of a root")


_authority = object_of(
    {
        "issuer": principal,
        "delegatee": principal,
        "capabilities": _capabilities,
        "contractId": id_of("ct"),
        "delegationId": _delegation_id,
        "parentDelegationId": id_of("del"),
        "chainDepth": count,
        "maxChainDepth": count,
        "maxBudgetMicrocents": count,
        "expiresAt": time,
        "issuedAt": time,
    }
)
_attenuation = object_of(
    {
        "attenuator": principal,
        "delegatee": principal,
        "delegationId": _delegation_id,
        "contractId": id_of("ct"),
    },
    {
        "allowedCapabilities": _capabilities,
        "maxBudgetMicrocents": count,
        "expiresAt": time,
        "maxChainDepth": count,
    },
)
_token = object_of(
    {
        "format": one_of(FORMAT),
        "authority": _authority,
        "attenuations": array_of(_attenuation, MAX_ATTENUATIONS, "token_too_large"),
        "signatures": array_of(
            object_of(
                {
                    "signer": principal,
                    "signature": signature,
                    "covers": that(
                        "neither authority nor an index",
                        lambda value: value == "authority" or is_count(value),
                    ),
                }
            ),
            MAX_ATTENUATIONS + 1,
            "token_too_large",
        ),
    }
)


def check_authority(value: Any) -> None:
    """Raises TokenError unless a value is an authority block: its members fit, also to one another. (DelegateOS 3.1)"""
    _authority(value, "authority")
    _check_authority_sense(value)


def check_attenuation(value: Any) -> None:
    """Raises TokenError unless a value is an attenuation block. (DelegateOS 3.1)"""
    _attenuation(value, "attenuation")


def check_token(value: Any) -> None:
    """Raises TokenError unless a value has the structure of a token. (DelegateOS 10.1 step 1)"""
    _token(value, "")
    authority = value["authority"]
    _check_authority_sense(authority)
    seen = {authority["parentDelegationId"], authority["delegationId"]}
    for index, block in enumerate(value["attenuations"]):
        if block["delegationId"] in seen:
            raise TokenError("malformed_token", f"attenuations[{index}].delegationId: twice in one chain")
        seen.add(block["delegationId"])


def _check_authority_sense(authority: dict[str, Any]) -> None:
    is_root = authority["parentDelegationId"] == ROOT_DELEGATION_ID
    if is_root != (authority["chainDepth"] == 0):
        raise TokenError("malformed_token", "authority.chainDepth: 0 for a root, and for a root only")
    if authority["parentDelegationId"] == authority["delegationId"]:
        raise TokenError("malformed_token", "authority.delegationId: its own parent")
    if (parse_time(authority["expiresAt"]) or 0) <= (parse_time(authority["issuedAt"]) or 0):
        raise TokenError("malformed_token", "authority.expiresAt: not after issuedAt")


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
