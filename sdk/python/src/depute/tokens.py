"""DelegateOS tokens: chains of signed blocks, each of which may only attenuate the one above."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Callable, Iterable, Mapping

from . import _shapes as shapes
from . import encodings
from ._globs import (
    PatternProblem,
    Work,
    contains,
    is_well_formed,
    matches,
    parse_pattern,
    parse_resource,
)
from .canonical import CanonicalError, blake2b_256, canonical_bytes, canonical_json, parse_lax_json
from .denials import TokenError
from .keys import Keypair, parse_principal, verify
from .proofs import CLOCK_SKEW_MS, AcceptedProof, check_proof, now_ms
from .sessions import HolderSession

#: Maximum length of a serialized token, in characters.
MAX_TOKEN_CHARS = 16_000
#: Maximum nesting of JSON in a token.
MAX_TOKEN_NESTING = 8
DEFAULT_LIFETIME_MS = 3_600_000
MAX_LIFETIME_MS = 86_400_000

#: Whether a contract is a recorded sub-contract of another.
SubContractRule = Callable[[str, str], bool]


def new_id(kind: str) -> str:
    """A new identifier of a kind: `ct`, `del` or `att`."""
    while True:
        name = f"{kind}_{secrets.token_hex(6)}"
        if name != shapes.ROOT_DELEGATION_ID:
            return name


def capability(namespace: str, action: str, resource: str) -> dict[str, str]:
    """A capability. `resource` is a pattern of segments: `*` for one, `**` for any number."""
    return {"namespace": namespace, "action": action, "resource": resource}


@dataclass(frozen=True)
class Level:
    """The limits and capabilities after one block of a chain."""

    signer: str
    delegatee: str
    delegation_id: str
    contract_id: str
    capabilities: list[dict[str, str]]
    max_budget_microcents: int
    #: Milliseconds since 1970.
    expires_at: int
    #: Number of delegations above this block; 0 at the root.
    chain_depth: int
    #: Number of delegations that are still allowed below this block.
    remaining_depth: int


class Token:
    """A token with a valid structure. Signatures and limits are checked by verify_token."""

    def __init__(self, document: dict[str, Any]) -> None:
        """:param document: the token in its JSON form (DelegateOS 3.1). Raises TokenError for another structure."""
        shapes.check_token(document)
        self._document = document

    @classmethod
    def parse(cls, text: object) -> Token:
        """Reads a serialized token, alone or as `{token, format}`. A token has one spelling. Raises TokenError."""
        text = token_text(text)
        data = encodings.decode(text)
        if data is None:
            raise TokenError("malformed_token", "token: not base64url")
        try:
            content = data.decode("utf-8")
        except UnicodeDecodeError:
            raise TokenError("malformed_token", "not UTF-8") from None
        if _nests_deeper_than(content, MAX_TOKEN_NESTING):
            raise TokenError("malformed_token", "nested too deep")
        try:
            document = parse_lax_json(content)
        except ValueError:
            raise TokenError("malformed_token", "not JSON") from None
        token = cls(document)
        try:
            is_canonical = canonical_json(document) == content
        except CanonicalError:
            raise TokenError("malformed_token", "no canonical form") from None
        if not is_canonical:
            raise TokenError("malformed_token", "not canonical")
        return token

    @classmethod
    def mint(
        cls,
        issuer: Keypair,
        *,
        delegatee: str,
        capabilities: Iterable[Mapping[str, str]],
        contract_id: str,
        max_budget_microcents: int,
        max_chain_depth: int,
        delegation_id: str | None = None,
        parent_delegation_id: str = shapes.ROOT_DELEGATION_ID,
        chain_depth: int = 0,
        issued_at: str | None = None,
        expires_at: str | None = None,
        now: int | None = None,
        max_lifetime_ms: int = MAX_LIFETIME_MS,
    ) -> Token:
        """
        Creates a new token that its issuer signs. (DelegateOS 3.3) The token expires after one hour unless
        `expires_at` is given.

        Raises TokenError for a block that every verifier denies.
        """
        issued_at = issued_at or shapes.format_time(now_ms() if now is None else now)
        start = shapes.parse_time(issued_at)
        if start is None:
            raise TokenError("malformed_token", "authority.issuedAt: not a time")
        authority = {
            "issuer": issuer.principal,
            "delegatee": delegatee,
            "capabilities": [dict(one) for one in capabilities],
            "contractId": contract_id,
            "delegationId": delegation_id or new_id("del"),
            "parentDelegationId": parent_delegation_id,
            "chainDepth": chain_depth,
            "maxChainDepth": max_chain_depth,
            "maxBudgetMicrocents": max_budget_microcents,
            "expiresAt": expires_at or shapes.format_time(start + DEFAULT_LIFETIME_MS),
            "issuedAt": issued_at,
        }
        _check_new_authority(authority, max_lifetime_ms)
        signature = issuer.sign(signed_digest(authority, []))
        return cls(
            {
                "format": shapes.FORMAT,
                "authority": authority,
                "attenuations": [],
                "signatures": [
                    {
                        "signer": issuer.principal,
                        "signature": encodings.encode(signature),
                        "covers": "authority",
                    }
                ],
            }
        )

    def attenuate(
        self,
        attenuator: Keypair,
        *,
        delegatee: str,
        allowed_capabilities: Iterable[Mapping[str, str]] | None = None,
        max_budget_microcents: int | None = None,
        expires_at: str | None = None,
        max_chain_depth: int | None = None,
        delegation_id: str | None = None,
        contract_id: str | None = None,
        sub_contract: SubContractRule | None = None,
    ) -> Token:
        """
        A token with one more block, for the next delegatee. (DelegateOS 3.4) An absent limit keeps its value, except
        that the depth decreases by one. An empty list of capabilities allows nothing.

        Raises TokenError where the block allows more than the token, or the key is not the present delegatee's.
        """
        last = self.last_block
        block: dict[str, Any] = {
            "attenuator": attenuator.principal,
            "delegatee": delegatee,
            "delegationId": delegation_id or new_id("del"),
            "contractId": contract_id or last["contractId"],
        }
        if allowed_capabilities is not None:
            block["allowedCapabilities"] = [dict(one) for one in allowed_capabilities]
        limits = {
            "maxBudgetMicrocents": max_budget_microcents,
            "expiresAt": expires_at,
            "maxChainDepth": max_chain_depth,
        }
        block.update({name: limit for name, limit in limits.items() if limit is not None})
        shapes.check_attenuation(block)
        blocks = [*self._document["attenuations"], block]
        longer = {**self._document, "attenuations": blocks}
        shapes.check_token(longer)
        walk_chain(longer, sub_contract)
        signature = attenuator.sign(signed_digest(self._document["authority"], blocks))
        signed = {
            "signer": attenuator.principal,
            "signature": encodings.encode(signature),
            "covers": len(blocks) - 1,
        }
        token = Token({**longer, "signatures": [*self._document["signatures"], signed]})
        if len(token.text) > MAX_TOKEN_CHARS:
            raise TokenError("token_too_large", f"token: more than {MAX_TOKEN_CHARS} characters")
        return token

    @property
    def document(self) -> dict[str, Any]:
        """A copy of the token in its JSON form."""
        copy: dict[str, Any] = json.loads(canonical_json(self._document))
        return copy

    @cached_property
    def text(self) -> str:
        """The serialized token, as `authorization: DPoP` carries it. (DelegateOS 3.2)"""
        text = encodings.encode(canonical_bytes(self._document))
        if len(text) > MAX_TOKEN_CHARS:
            raise TokenError("token_too_large", f"token: more than {MAX_TOKEN_CHARS} characters")
        return text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Token({self.revocation_ids[-1]!r}, {len(self._document['attenuations'])} attenuations)"

    @property
    def last_block(self) -> dict[str, Any]:
        """The last block: an attenuation, or the authority."""
        blocks = self._document["attenuations"]
        block: dict[str, Any] = blocks[-1] if blocks else self._document["authority"]
        return block

    @property
    def holder(self) -> str:
        """The delegatee of the last block. This principal has to prove possession."""
        return str(self.last_block["delegatee"])

    @cached_property
    def revocation_ids(self) -> list[str]:
        """The revocation id of each block, the authority's first. (DelegateOS 3.5)"""
        return [
            encodings.encode(blake2b_256(canonical_bytes(block)))
            for block in (self._document["authority"], *self._document["attenuations"])
        ]

    @property
    def revocation_id(self) -> str:
        """The revocation id of the last block."""
        return self.revocation_ids[-1]


def token_text(value: object) -> str:
    """The serialized text of a token: a Token, its text, or `{token, format}`. Raises TokenError."""
    if isinstance(value, Token):
        return value.text
    if isinstance(value, Mapping):
        if value.get("format") != shapes.FORMAT:
            raise TokenError("malformed_token", f"format: not {shapes.FORMAT}")
        value = value.get("token")
    if not isinstance(value, str):
        raise TokenError("malformed_token", "token: not text")
    if len(value) > MAX_TOKEN_CHARS:
        raise TokenError("token_too_large", f"token: more than {MAX_TOKEN_CHARS} characters")
    return value


def signed_digest(authority: Mapping[str, Any], attenuations: list[Any]) -> bytes:
    """The 32 bytes that the signature of the last block covers: every block up to it. (DelegateOS 3.3, 3.4)"""
    value = (
        {"attenuations": attenuations, "authority": authority} if attenuations else {"authority": authority}
    )
    return blake2b_256(canonical_bytes(value))


def _check_new_authority(authority: dict[str, Any], max_lifetime_ms: int) -> None:
    shapes.check_authority(authority)
    start, end = shapes.parse_time(authority["issuedAt"]), shapes.parse_time(authority["expiresAt"])
    if (end or 0) - (start or 0) > max_lifetime_ms:
        raise TokenError("malformed_token", f"authority.expiresAt: lives longer than {max_lifetime_ms} ms")
    depth, most = authority["chainDepth"], authority["maxChainDepth"]
    if depth > most:
        raise TokenError("chain_depth_exceeded", "authority", max=most, actual=depth)
    for index, one in enumerate(authority["capabilities"]):
        if not shapes.is_known_capability(one["namespace"], one["action"]):
            raise TokenError(
                "malformed_token",
                f"authority.capabilities[{index}]: neither registered nor custom org:namespace",
            )


def walk_chain(document: Mapping[str, Any], sub_contract: SubContractRule | None = None) -> list[Level]:
    """The grants after each block. (DelegateOS 10.1 step 4) Raises TokenError at the first block that grants more."""
    authority = document["authority"]
    remaining = authority["maxChainDepth"] - authority["chainDepth"]
    if remaining < 0:
        raise TokenError(
            "chain_depth_exceeded",
            "authority",
            max=authority["maxChainDepth"],
            actual=authority["chainDepth"],
        )
    work = Work()
    level = Level(
        authority["issuer"],
        authority["delegatee"],
        authority["delegationId"],
        authority["contractId"],
        authority["capabilities"],
        authority["maxBudgetMicrocents"],
        _instant(authority["expiresAt"]),
        authority["chainDepth"],
        remaining,
    )
    levels = [level]
    for index, block in enumerate(document["attenuations"]):
        level = _narrow(level, block, f"attenuations[{index}]", sub_contract, work)
        levels.append(level)
    return levels


def _narrow(
    parent: Level,
    block: Mapping[str, Any],
    path: str,
    sub_contract: SubContractRule | None,
    work: Work,
) -> Level:
    if block["attenuator"] != parent.delegatee:
        raise TokenError("attenuation_violation", f"{path}: attenuator mismatch")
    allowed = block.get("allowedCapabilities")
    if allowed is not None:
        for index, child in enumerate(allowed):
            if not any(is_subset(child, one, work) for one in parent.capabilities):
                why = "too complex" if work.left < 0 else "capability expansion"
                raise TokenError("attenuation_violation", f"{path}.allowedCapabilities[{index}]: {why}")
    budget = block.get("maxBudgetMicrocents", parent.max_budget_microcents)
    if budget > parent.max_budget_microcents:
        raise TokenError("attenuation_violation", f"{path}: budget expansion")
    expires_at = _instant(block["expiresAt"]) if "expiresAt" in block else parent.expires_at
    if expires_at > parent.expires_at:
        raise TokenError("attenuation_violation", f"{path}: expiry expansion")
    if parent.remaining_depth == 0:
        raise TokenError("chain_depth_exceeded", path, max=parent.chain_depth, actual=parent.chain_depth + 1)
    # Each block uses one delegation of the remaining depth, even if the block states no depth.
    remaining = block.get("maxChainDepth", parent.remaining_depth - 1)
    if remaining >= parent.remaining_depth:
        raise TokenError("attenuation_violation", f"{path}: depth expansion")
    contract = block["contractId"]
    if contract != parent.contract_id and not (
        sub_contract is not None and sub_contract(contract, parent.contract_id) is True
    ):
        raise TokenError("contract_mismatch", f"{path}.contractId")
    return Level(
        block["attenuator"],
        block["delegatee"],
        block["delegationId"],
        contract,
        parent.capabilities if allowed is None else allowed,
        budget,
        expires_at,
        parent.chain_depth + 1,
        remaining,
    )


def is_subset(child: Mapping[str, str], parent: Mapping[str, str], work: Work | None = None) -> bool:
    """Whether a capability is contained in another. (DelegateOS 10.2)"""
    if (child["namespace"], child["action"]) != (parent["namespace"], parent["action"]):
        return False
    try:
        inner = parse_pattern(child["resource"], child["namespace"])
        outer = parse_pattern(parent["resource"], parent["namespace"])
    except PatternProblem:
        return False
    return contains(outer, inner, work)


def _instant(text: str) -> int:
    ms = shapes.parse_time(text)
    if ms is None:
        raise TokenError("malformed_token", "not a time")
    return ms


@dataclass(frozen=True)
class Presentation:
    """A proof of possession that was sent with the token, and the values to which the proof must be bound."""

    proof: str | None
    htm: str
    htu: str
    #: The holder session that the proof belongs to; None for a standalone proof.
    session: HolderSession | None = None
    #: arguments_digest of the call's arguments, for a tool call.
    ard: str | None = None


@dataclass(frozen=True)
class Verified:
    """A valid token: its grants and its holder. The verifier must still refuse a replay of the proof."""

    token: Token
    levels: list[Level]
    remaining_budget_microcents: int
    proof: AcceptedProof | None = None

    @property
    def scope(self) -> dict[str, Any]:
        """The grants of the token, in the JSON form of DelegateOS 10.1 step 8."""
        last = self.levels[-1]
        return {
            "capabilities": [dict(one) for one in last.capabilities],
            "remainingBudgetMicrocents": self.remaining_budget_microcents,
            "chainDepth": last.chain_depth,
            "maxChainDepth": last.chain_depth + last.remaining_depth,
            "contractId": last.contract_id,
            "delegationId": last.delegation_id,
            "issuer": self.levels[0].signer,
            "holder": last.delegatee,
            "expiresAt": last.expires_at,
        }


def verify_token(
    token: object,
    *,
    trusted_roots: Iterable[str],
    holder: Presentation | str,
    now: int | None = None,
    is_revoked: Callable[[str, list[str]], bool] = lambda block, rightful: False,
    is_stale: Callable[[int], bool] | None = None,
    spent_microcents: int | Callable[[str], int] = 0,
    request: Mapping[str, str] | None = None,
    contract_id: str | None = None,
    required_capabilities: Iterable[str] = (),
    sub_contract: SubContractRule | None = None,
    max_lifetime_ms: int = MAX_LIFETIME_MS,
    clock_skew_ms: int = CLOCK_SKEW_MS,
    max_chain_depth: int | None = None,
) -> Verified:
    """
    Verifies a token in the order of DelegateOS 10.1, and changes no state. Raises TokenError.

    :param trusted_roots: principals whose roots are accepted
    :param holder: a Presentation, `proved` where the caller has checked possession, or `bearer` without any
        check
    :param is_revoked: whether one of the entitled principals has revoked a block
    :param spent_microcents: the spend under the last block, or a function from a block's revocation id to its
        spend
    :param request: the requested capability; None to verify only the token
    """
    if not isinstance(holder, Presentation) and holder not in ("proved", "bearer"):
        raise TokenError("internal_context", "holder")
    now = now_ms() if now is None else now
    text = token_text(token)
    read = Token.parse(text)
    document, ids = read._document, read.revocation_ids
    for index, block in enumerate(ids):
        if is_revoked(block, rightful_revokers(document, index)) is not False:
            raise TokenError("revoked", _block_name(index))
    if is_stale is not None and is_stale(now):
        raise TokenError("revocation_state_stale")
    _check_signatures(document, frozenset(trusted_roots))
    levels = walk_chain(document, sub_contract)
    last = levels[-1]
    if max_chain_depth is not None and last.chain_depth > max_chain_depth:
        raise TokenError(
            "chain_depth_exceeded", "of the verifier", max=max_chain_depth, actual=last.chain_depth
        )
    proof = _check_held(text, last, holder, now)
    _check_times(document["authority"], last, now, max_lifetime_ms, clock_skew_ms)
    remaining = _remaining_budget(levels, ids, spent_microcents)
    _check_contract(last, contract_id, required_capabilities)
    _check_granted(last, request, holder)
    return Verified(read, levels, remaining, proof)


def rightful_revokers(document: Mapping[str, Any], level: int) -> list[str]:
    """The principals that may revoke a block: its signer, its delegatee, and the signer of every block above."""
    above = document["attenuations"][:level]
    block = above[-1] if above else document["authority"]
    return [
        document["authority"]["issuer"],
        *(one["attenuator"] for one in above),
        block["delegatee"],
    ]


def _check_signatures(document: Mapping[str, Any], trusted_roots: frozenset[str]) -> None:
    """
    Verifies the signature of each block with the key inside the block. The signer that is stated beside a
    signature is not signed, so it is not trusted.
    """
    authority, blocks = document["authority"], document["attenuations"]
    signatures = document["signatures"]
    if len(signatures) != len(blocks) + 1:
        raise TokenError("invalid_signature", "signatures: not one a block")
    if authority["issuer"] not in trusted_roots:
        raise TokenError("invalid_signature", "authority.issuer: not a trusted root")
    for index, entry in enumerate(signatures):
        signer = authority["issuer"] if index == 0 else blocks[index - 1]["attenuator"]
        covers = entry["covers"]
        if entry["signer"] != signer:
            raise TokenError("invalid_signature", f"signatures[{index}].signer")
        if covers != ("authority" if index == 0 else index - 1):
            raise TokenError("invalid_signature", f"signatures[{index}].covers")
        signature, key = encodings.decode(entry["signature"]), parse_principal(signer)
        if signature is None or key is None:
            raise TokenError("invalid_signature", _block_name(index))
        if not verify(signature, signed_digest(authority, blocks[:index]), key):
            raise TokenError("invalid_signature", _block_name(index))


def _check_held(text: str, last: Level, holder: Presentation | str, now: int) -> AcceptedProof | None:
    if not isinstance(holder, Presentation):
        return None
    check = check_proof if holder.session is None else holder.session.check
    return check(
        holder.proof,
        htm=holder.htm,
        htu=holder.htu,
        now=now,
        principal=last.delegatee,
        token=text,
        ard=holder.ard,
    )


def _check_times(
    authority: Mapping[str, Any], last: Level, now: int, max_lifetime_ms: int, clock_skew_ms: int
) -> None:
    """Checks that a token is valid now. A token is still valid in the millisecond in which it expires."""
    issued_at = _instant(authority["issuedAt"])
    if issued_at > now + clock_skew_ms:
        raise TokenError("malformed_token", "authority.issuedAt: in the future")
    if _instant(authority["expiresAt"]) - issued_at > max_lifetime_ms:
        raise TokenError("malformed_token", "authority.expiresAt: lifetime")
    if now > last.expires_at:
        raise TokenError("expired")


def _remaining_budget(
    levels: list[Level], ids: list[str], spent_microcents: int | Callable[[str], int]
) -> int:
    remaining = 2**53 - 1
    for index, level in enumerate(levels):
        if not callable(spent_microcents) and index < len(levels) - 1:
            continue
        spent = spent_microcents(ids[index]) if callable(spent_microcents) else spent_microcents
        if not shapes.is_count(spent):
            raise TokenError("internal_context", "spentMicrocents")
        if spent >= level.max_budget_microcents:
            raise TokenError("budget_exceeded", _block_name(index), level=index)
        remaining = min(remaining, level.max_budget_microcents - spent)
    return remaining


def _check_contract(last: Level, contract_id: str | None, required: Iterable[str]) -> None:
    if contract_id is not None and last.contract_id != contract_id:
        raise TokenError("contract_mismatch", "contractId")
    granted = {(one["namespace"], one["action"]) for one in last.capabilities}
    for index, text in enumerate(required):
        if shapes.split_requirement(text) not in granted:
            raise TokenError("contract_mismatch", f"requiredCapabilities[{index}]")


def _check_granted(last: Level, request: Mapping[str, str] | None, holder: Presentation | str) -> None:
    if request is None:
        return
    namespace, action, resource = (request.get(name) for name in ("namespace", "action", "resource"))
    if not isinstance(namespace, str) or not isinstance(action, str):
        raise TokenError("internal_context", "request")
    try:
        if not isinstance(resource, str):
            raise PatternProblem("not text")
        path = parse_resource(resource, namespace)
    except PatternProblem as problem:
        raise TokenError("invalid_resource", f"request: {problem}") from None
    for one in last.capabilities:
        if (one["namespace"], one["action"]) == (namespace, action):
            if matches(parse_pattern(one["resource"], namespace), path):
                return
    requested = capability(_cut(namespace), _cut(action), _cut(resource))
    granted = {} if holder == "bearer" else {"granted": [dict(one) for one in last.capabilities]}
    raise TokenError("capability_not_granted", None, requested=requested, **granted)


def _cut(text: str) -> str:
    """At most 64 UTF-16 code units of a caller's text."""
    units = text.encode("utf-16-le", "surrogatepass")[:128].decode("utf-16-le", "surrogatepass")
    return (
        units if is_well_formed(units) else units.encode("utf-8", "replace").decode().replace("?", "\ufffd")
    )


def _block_name(level: int) -> str:
    return "authority" if level == 0 else f"attenuations[{level - 1}]"


def _nests_deeper_than(text: str, most: int) -> bool:
    depth = 0
    in_text = escaped = False
    for char in text:
        if in_text:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                in_text = False
        elif char == '"':
            in_text = True
        elif char in "{[":
            depth += 1
            if depth > most:
                return True
        elif char in "}]":
            depth -= 1
    return False
