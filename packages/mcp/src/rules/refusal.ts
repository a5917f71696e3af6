import { create, type JsonObject } from "@bufbuild/protobuf";
import { type DenialReason, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { ToolDenialSchema } from "@depute/contracts/delegateos/v0/mcp_pb";
import { CapabilitySchema } from "@depute/contracts/delegateos/v0/token_pb";
import { encode } from "@depute/wire";
import type { Right } from "./visible.ts";

/** The JSON-RPC error code of a refused token (DelegateOS 11.2). */
export const DENIED = -32001;
/** The JSON-RPC error code of an unknown method (JSON-RPC 2.0 section 5.1). */
export const METHOD_NOT_FOUND = -32601;
/** The JSON-RPC error code of headers that disagree with the body (MCP 2026-07-28, Streamable HTTP). */
export const HEADER_MISMATCH = -32020;
/** The JSON-RPC error code of a capability that the client did not declare (MCP 2026-07-28). */
export const MISSING_CAPABILITY = -32021;
/** The JSON-RPC error code of a reached limit. All JSON wires of Depute use this code. */
export const LIMIT_REACHED = -32056;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;

/** Thrown to refuse a request with a JSON-RPC error. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: number;
  readonly data: JsonObject;

  constructor(code: number, message: string, data: JsonObject) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** The state of the amount that was reserved for a failed call. Amounts are in microcents. */
export interface BudgetState {
  /**
   * `none`: the call costs nothing. `charged`: the platform counts the call as carried out. `released`: the call
   * certainly was not carried out. `held`: the settlement failed, so the whole amount is charged when the reservation
   * expires.
   */
  readonly state: "none" | "charged" | "released" | "held";
  readonly reservedMicrocents: number;
  readonly chargedMicrocents: number;
}

/** Creates the denial for an insufficient token, in the form of DelegateOS 11.2. */
export function denialOf(denial: Partial<DenialReason> & { type: DenialType }, requested?: Right): Refusal {
  const { type, detail, granted, max, actual } = denial;
  const requestedCapability = denial.requested ?? (requested === undefined ? undefined : rightOf(requested));
  const data = create(ToolDenialSchema, {
    type: type === DenialType.UNSPECIFIED ? DenialType.INTERNAL_CONTEXT : type,
    ...(requestedCapability === undefined ? {} : { requested: requestedCapability }),
    ...(granted === undefined ? {} : { granted }),
    ...(detail === undefined ? {} : { detail: detail.slice(0, 256) }),
    ...(max === undefined ? {} : { max }),
    ...(actual === undefined ? {} : { actual }),
  });
  return new Refusal(DENIED, "DCT verification failed", encode(ToolDenialSchema, data) as JsonObject);
}

/** Returns the denial for a tool or method without a rule. No token can allow such a call. */
export function unmapped(name: string): Refusal {
  const data = {
    type: "capability_not_granted",
    detail: `the tool map has no rule for ${name.slice(0, 64)}`,
  };
  return new Refusal(DENIED, "DCT verification failed", data);
}

/** The error for a failure of the server behind the proxy. `reason` is the name of an `ErrorReason`. */
export function upstreamFailed(
  reason: "INTERNAL" | "DEADLINE_EXCEEDED" | "DEPENDENCY_UNAVAILABLE",
  detail: string,
  budget: BudgetState,
): Refusal {
  return new Refusal(INTERNAL_ERROR, "the MCP server failed", { reason, detail, budget: { ...budget } });
}

/** Returns the error for a response of the server that is larger than the proxy's limit. */
export function upstreamTooLong(detail: string, maxBytes: number, budget: BudgetState): Refusal {
  const metadata = { limit: "upstream_message_bytes", max: String(maxBytes) };
  const data = { reason: "LIMIT_EXCEEDED", detail, metadata, budget: { ...budget } };
  return new Refusal(INTERNAL_ERROR, "the MCP server failed", data);
}

/** Shortens a capability to the limits of an error message, so that a long argument causes no second error. */
function rightOf({ namespace, action, resource }: Right) {
  return create(CapabilitySchema, { namespace, action, resource: resource.slice(0, 64) });
}
