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

/** Converts a denial to its contract message. */
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

/** The principal that a valid proof proves, or the denial of the proof. */
export type ProofResult = { ok: true; principal: string } | { ok: false; denial: Denial };

/** Converts the result of a proof's verification to the member `result` of VerifyProof's response. */
export function toVerdict(result: ProofResult): VerifyProofResponse["result"] {
  return result.ok
    ? { case: "principal", value: result.principal }
    : { case: "denial", value: toDenialReason(result.denial) };
}

/**
 * Returns one line about a denial for the audit log: the type and the place of the fault. The line quotes nothing from
 * the request.
 */
export function reasonText({ type, detail }: Denial): string {
  return detail === undefined ? type : `${type}: ${detail}`;
}

/** Returns the decision and its reason for the audit log. If `denial` is undefined, the decision is `allowed`. */
export function decisionOf(denial: Denial | undefined): { decision: "allowed" | "denied"; reason: string } {
  if (denial === undefined) return { decision: "allowed", reason: "" };
  return { decision: "denied", reason: reasonText(denial) };
}

/** Denials of input that is not a well-formed token. */
const NO_TOKEN: ReadonlySet<DenialWord> = new Set(["malformed_token", "token_too_large", "invalid_resource"]);

/** Denials of a block that grants more than the block above. */
const WIDENS: ReadonlySet<DenialWord> = new Set([
  "attenuation_violation",
  "chain_depth_exceeded",
  "contract_mismatch",
]);

/**
 * Builds the error of a call with a denied token: TOKEN_MALFORMED or TOKEN_DENIED. The error does not repeat
 * the capabilities of the token.
 */
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

/** Returns the error of a refused attenuation. The error concerns the new block, not the token. */
export function refusedAttenuation({ type, detail = "" }: Denial): DeputeError {
  const message = detail === "" ? type : `${type}: ${detail}`;
  if (type === "invalid_signature") {
    return new DeputeError(ErrorReason.SIGNATURE_INVALID, "the signature is not the attenuator's", {
      violations: [{ field: "signature", description: "must be the attenuator's signature over this block" }],
    });
  }
  const reason = WIDENS.has(type) ? ErrorReason.ATTENUATION_VIOLATION : ErrorReason.INVALID_REQUEST;
  return new DeputeError(reason, message, {
    metadata: { detail: message },
    violations: [{ field: "attenuation", description: message }],
  });
}

/** Builds the error of a refused mint of a root token. */
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

/** Returns the field of MintTokenRequest from which a member of the authority block comes; empty for other members. */
function fieldOf(detail: string): string {
  return FIELDS.find(([prefix]) => detail.startsWith(prefix))?.[1] ?? "";
}
