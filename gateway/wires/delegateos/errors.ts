import { create } from "@bufbuild/protobuf";
import { DenialType, DenialTypeSchema } from "@depute/contracts/delegateos/v0/delegation_pb";
import { type ToolDenial, ToolDenialSchema } from "@depute/contracts/delegateos/v0/mcp_pb";
import type { Capability } from "@depute/contracts/delegateos/v0/token_pb";
import { ErrorReason } from "@depute/core";
import { encode } from "@depute/wire";
import { refusalIn, WireFault } from "../../src/fault.ts";
import { type ErrorTable, JSON_RPC, OWN } from "../../src/own-codes.ts";

/** The one code that DelegateOS numbers (DelegateOS 11.2). */
export const DENIED = { code: -32001, message: "DCT verification failed" } as const;

/** Every reason as DelegateOS says it; JSON-RPC's own codes for the rest, and Depute's own where those do not fit. */
export const DELEGATEOS_ERRORS: ErrorTable = {
  UNSPECIFIED: JSON_RPC.INTERNAL_ERROR,
  INTERNAL: JSON_RPC.INTERNAL_ERROR,
  INVALID_REQUEST: JSON_RPC.INVALID_PARAMS,
  MALFORMED_JSON: JSON_RPC.INVALID_PARAMS,
  LIMIT_EXCEEDED: OWN.LIMIT_EXCEEDED,
  UNKNOWN_METHOD: JSON_RPC.METHOD_NOT_FOUND,
  UNAUTHENTICATED: OWN.UNAUTHENTICATED,
  CALLER_NOT_ALLOWED: OWN.NOT_ALLOWED,
  SHUTTING_DOWN: OWN.UNAVAILABLE,
  DEPENDENCY_UNAVAILABLE: OWN.UNAVAILABLE,
  REQUEST_ID_REUSED: OWN.CONFLICT,
  PAGE_TOKEN_INVALID: JSON_RPC.INVALID_PARAMS,
  DEADLINE_EXCEEDED: OWN.DEADLINE_EXCEEDED,
  SERVICE_UNKNOWN: OWN.NOT_FOUND,

  AGENT_NOT_FOUND: OWN.NOT_FOUND,
  CAPABILITY_NOT_FOUND: OWN.NOT_FOUND,
  CAPABILITY_AMBIGUOUS: JSON_RPC.INVALID_PARAMS,
  VERSION_MISMATCH: OWN.CONFLICT,
  AGENT_EXISTS: OWN.CONFLICT,
  SCHEMA_INVALID: JSON_RPC.INVALID_PARAMS,

  TASK_NOT_FOUND: OWN.NOT_FOUND,
  TASK_STATE_CONFLICT: OWN.WRONG_STATE,
  TASK_NOT_CANCELLABLE: OWN.WRONG_STATE,
  TASK_NOT_RESUMABLE: OWN.WRONG_STATE,
  LEASE_LOST: OWN.CONFLICT,
  EVENTS_PURGED: OWN.WRONG_STATE,
  INPUT_SCHEMA_VIOLATION: JSON_RPC.INVALID_PARAMS,
  OUTPUT_SCHEMA_VIOLATION: JSON_RPC.INVALID_PARAMS,
  BUDGET_EXCEEDED: OWN.LIMIT_EXCEEDED,
  TASK_TIMEOUT: OWN.DEADLINE_EXCEEDED,
  TASK_FAILED: OWN.WRONG_STATE,
  // The delegation's id with another contract or token.
  TASK_ID_TAKEN: OWN.CONFLICT,
  CONTEXT_PERMISSION_DENIED: OWN.NOT_ALLOWED,

  TOKEN_DENIED: DENIED,
  TOKEN_NOT_FOUND: OWN.NOT_FOUND,
  ATTENUATION_VIOLATION: JSON_RPC.INVALID_PARAMS,
  SIGNATURE_INVALID: JSON_RPC.INVALID_PARAMS,
  NOT_AUTHORIZED_TO_REVOKE: OWN.NOT_ALLOWED,
  TOKEN_MALFORMED: JSON_RPC.INVALID_PARAMS,

  CONTRACT_NOT_FOUND: OWN.NOT_FOUND,
  CONTRACT_EXISTS: OWN.CONFLICT,
  ATTESTATION_NOT_FOUND: OWN.NOT_FOUND,
  ATTESTATION_EXISTS: OWN.CONFLICT,
  UNKNOWN_CHECK: JSON_RPC.INVALID_PARAMS,
  UNSUPPORTED_PATTERN: JSON_RPC.INVALID_PARAMS,
  CHECK_TIMEOUT: OWN.DEADLINE_EXCEEDED,
};

const TYPES = new Map(
  DenialTypeSchema.values.map(({ name, number }) => [
    name.slice("DENIAL_TYPE_".length).toLowerCase(),
    number as DenialType,
  ]),
);

/**
 * A refused token in the form of the text: its data says what type the denial has and what was asked for
 * (DelegateOS 11.2). What the token grants is told by the tokens service to its holder only. Any other fault passes.
 */
export function asDenial(thrown: unknown, requested?: Capability): unknown {
  if (thrown instanceof WireFault) return thrown;
  const refusal = refusalIn(thrown);
  if (refusal.reason !== ErrorReason.TOKEN_DENIED) return thrown;
  const { denial = "", detail } = refusal.metadata;
  const data: ToolDenial = create(ToolDenialSchema, {
    type: TYPES.get(denial) ?? DenialType.INTERNAL_CONTEXT,
    ...(requested === undefined ? {} : { requested }),
    ...(detail === undefined ? {} : { detail: detail.slice(0, 256) }),
  });
  return new WireFault(refusal, encode(ToolDenialSchema, data));
}
