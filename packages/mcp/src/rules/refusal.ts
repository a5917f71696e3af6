import { create, type JsonObject } from "@bufbuild/protobuf";
import { type DenialReason, DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { ToolDenialSchema } from "@depute/contracts/delegateos/v0/mcp_pb";
import { CapabilitySchema } from "@depute/contracts/delegateos/v0/token_pb";
import { encode } from "@depute/wire";
import type { Right } from "./visible.ts";

/** Code of a refused token (DelegateOS 11.2). */
export const DENIED = -32001;
/** JSON-RPC 2.0 section 5.1. */
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;

/** What an answer says instead of a result: an error of JSON-RPC. */
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

/** Where the money of a call that failed is. Amounts are microcents. */
export interface BudgetState {
  /** `none`: the call costs nothing; `charged`: it counts as made; `released`: it certainly was not; `held`: settled later. */
  readonly state: "none" | "charged" | "released" | "held";
  readonly reservedMicrocents: number;
  readonly chargedMicrocents: number;
}

/** What a token was not enough for, in the form of DelegateOS 11.2. */
export function denialOf(denial: Partial<DenialReason> & { type: DenialType }, requested?: Right): Refusal {
  const { type, detail, granted, max, actual } = denial;
  const asked = denial.requested ?? (requested === undefined ? undefined : rightOf(requested));
  const data = create(ToolDenialSchema, {
    type: type === DenialType.UNSPECIFIED ? DenialType.INTERNAL_CONTEXT : type,
    ...(asked === undefined ? {} : { requested: asked }),
    ...(granted === undefined ? {} : { granted }),
    ...(detail === undefined ? {} : { detail: detail.slice(0, 256) }),
    ...(max === undefined ? {} : { max }),
    ...(actual === undefined ? {} : { actual }),
  });
  return new Refusal(DENIED, "DCT verification failed", encode(ToolDenialSchema, data) as JsonObject);
}

/** A tool or method that no rule knows is granted to nobody. */
export function unmapped(name: string): Refusal {
  const data = { type: "capability_not_granted", detail: `nothing is allowed of ${name.slice(0, 64)}` };
  return new Refusal(DENIED, "DCT verification failed", data);
}

/** The server behind the proxy failed; `reason` is of Depute's vocabulary. */
export function upstreamFailed(
  reason: "INTERNAL" | "DEADLINE_EXCEEDED" | "DEPENDENCY_UNAVAILABLE",
  detail: string,
  budget: BudgetState,
): Refusal {
  return new Refusal(INTERNAL_ERROR, "the MCP server failed", { reason, detail, budget: { ...budget } });
}

/** The server behind the proxy answered with more bytes than the proxy takes. */
export function upstreamTooLong(detail: string, maxBytes: number, budget: BudgetState): Refusal {
  const metadata = { limit: "upstream_message_bytes", max: String(maxBytes) };
  const data = { reason: "LIMIT_EXCEEDED", detail, metadata, budget: { ...budget } };
  return new Refusal(INTERNAL_ERROR, "the MCP server failed", data);
}

/** Cut to what a message holds, so that an odd argument is told rather than hidden by a second fault. */
function rightOf({ namespace, action, resource }: Right) {
  return create(CapabilitySchema, { namespace, action, resource: resource.slice(0, 64) });
}
