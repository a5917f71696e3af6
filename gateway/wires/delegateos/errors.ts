import { create } from "@bufbuild/protobuf";
import { DenialType, DenialTypeSchema } from "@depute/contracts/delegateos/v0/delegation_pb";
import { type ToolDenial, ToolDenialSchema } from "@depute/contracts/delegateos/v0/mcp_pb";
import type { Capability } from "@depute/contracts/delegateos/v0/token_pb";
import { ErrorReason } from "@depute/core";
import { encode } from "@depute/wire";
import { errorTable } from "../../src/error-table.ts";
import { refusalIn, WireFault } from "../../src/fault.ts";
import { JSON_RPC } from "../../src/own-codes.ts";

/** The one code that DelegateOS numbers (DelegateOS 11.2). */
export const DENIED = { code: -32001, message: "DCT verification failed" } as const;

/** Every reason as DelegateOS says it: its one code, JSON-RPC's own, and Depute's own codes for the rest. */
export const DELEGATEOS_ERRORS = errorTable({
  TOKEN_DENIED: DENIED,
  CAPABILITY_AMBIGUOUS: JSON_RPC.INVALID_PARAMS,
});

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
