import { create } from "@bufbuild/protobuf";
import {
  type DenialReason,
  DenialReasonSchema,
  DenialType,
  DenialTypeSchema,
} from "@depute/contracts/delegateos/v0/delegation_pb";
import type { VerifyProofResponse } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import type { DenialReason as Denial, DenialType as DenialWord, TokenError } from "@depute/dct";

const MAX_DETAIL = 256;

const TYPES: ReadonlyMap<string, DenialType> = new Map(
  DenialTypeSchema.values.map(({ name, number }) => {
    return [name.slice("DENIAL_TYPE_".length).toLowerCase(), number as DenialType];
  }),
);

/** A denial as the contracts have it. */
export function toDenialReason({ type, detail, requested, granted, max, actual }: Denial): DenialReason {
  return create(DenialReasonSchema, {
    type: TYPES.get(type) ?? DenialType.INTERNAL_CONTEXT,
    ...(detail !== undefined && { detail: detail.slice(0, MAX_DETAIL) }),
    ...(requested !== undefined && { requested }),
    ...(granted !== undefined && { granted: { capabilities: granted } }),
    ...(max !== undefined && { max: BigInt(max) }),
    ...(actual !== undefined && { actual: BigInt(actual) }),
  });
}

/** A proof that holds, or why it does not. */
export type ProofResult = { ok: true; principal: string } | { ok: false; denial: Denial };

/** A judged proof as VerifyProof answers it. */
export function toVerdict(result: ProofResult): VerifyProofResponse["result"] {
  return result.ok
    ? { case: "principal", value: result.principal }
    : { case: "denial", value: toDenialReason(result.denial) };
}

/** A denial in one line, for the audit: the type and where, never what was sent. */
export function reasonText({ type, detail }: Denial): string {
  return detail === undefined ? type : `${type}: ${detail}`;
}

/** What the audit says of a denial, or of none. */
export function decisionOf(denial: Denial | undefined): { decision: "allowed" | "denied"; reason: string } {
  if (denial === undefined) return { decision: "allowed", reason: "" };
  return { decision: "denied", reason: reasonText(denial) };
}

/** Denials for which there is no token at all. */
const NO_TOKEN: ReadonlySet<DenialWord> = new Set(["malformed_token", "token_too_large", "invalid_resource"]);

/** Denials for a block that allows more than the one before it. */
const WIDENS: ReadonlySet<DenialWord> = new Set([
  "attenuation_violation",
  "chain_depth_exceeded",
  "contract_mismatch",
]);

/** The refusal of a call whose token was denied: TOKEN_MALFORMED or TOKEN_DENIED. What it grants is not repeated. */
export function refusedToken({ type, detail = "" }: Denial): DeputeError {
  const message = detail === "" ? type : `${type}: ${detail}`;
  if (NO_TOKEN.has(type)) {
    return new DeputeError(ErrorReason.TOKEN_MALFORMED, message, {
      metadata: { detail: message },
      violations: [{ field: "token", description: message }],
    });
  }
  const metadata = { denial: type as string, ...(detail !== "" && { detail }) };
  return new DeputeError(ErrorReason.TOKEN_DENIED, `the token is denied: ${message}`, { metadata });
}

/** The refusal of a block that somebody wants to append: what is wrong is the block, not the token. */
export function refusedAttenuation({ type, detail = "" }: Denial): DeputeError {
  const message = detail === "" ? type : `${type}: ${detail}`;
  if (type === "invalid_signature") {
    return new DeputeError(ErrorReason.SIGNATURE_INVALID, "the signature is not the attenuator's", {
      violations: [{ field: "signature", description: "is not the attenuator's over this block" }],
    });
  }
  const reason = WIDENS.has(type) ? ErrorReason.ATTENUATION_VIOLATION : ErrorReason.INVALID_REQUEST;
  return new DeputeError(reason, message, {
    metadata: { detail: message },
    violations: [{ field: "attenuation", description: message }],
  });
}

/** The refusal of a root token that somebody wants minted. */
export function refusedMint({ denial }: TokenError): DeputeError {
  const message = denial.detail ?? denial.type;
  return new DeputeError(ErrorReason.INVALID_REQUEST, message, {
    violations: [{ field: fieldOf(message), description: message }],
  });
}

const FIELDS: readonly (readonly [prefix: string, field: string])[] = [
  ["authority.capabilities", "capabilities"],
  ["authority.delegatee", "delegatee"],
  ["authority.contractId", "contract_id"],
  ["authority.delegationId", "delegation_id"],
];

/** The field of MintTokenRequest that a member of the authority was made from. */
function fieldOf(detail: string): string {
  return FIELDS.find(([prefix]) => detail.startsWith(prefix))?.[1] ?? "";
}
