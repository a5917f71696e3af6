import { create } from "@bufbuild/protobuf";
import { DenialType, DenialTypeSchema } from "@depute/contracts/delegateos/v0/delegation_pb";
import { type ToolDenial, ToolDenialSchema } from "@depute/contracts/delegateos/v0/mcp_pb";
import {
  type Capability,
  type CapabilityList,
  CapabilityListSchema,
  SerializedDCTSchema,
} from "@depute/contracts/delegateos/v0/token_pb";
import { type DeputeError, ErrorReason } from "@depute/core";
import { encode } from "@depute/wire";
import type { Clients } from "../../src/clients.ts";
import { errorTable } from "../../src/error-table.ts";
import { refusalIn, WireFault } from "../../src/fault.ts";
import { JSON_RPC } from "../../src/own-codes.ts";
import type { WireCall } from "../../src/wire-call.ts";

/** The one code that DelegateOS numbers (DelegateOS 11.2). */
export const DENIED = { code: -32001, message: "DCT verification failed" } as const;

/** Every reason as DelegateOS says it: its one code, JSON-RPC's own, and Depute's own codes for the rest. */
export const DELEGATEOS_ERRORS = errorTable({
  TOKEN_DENIED: DENIED,
  // A statement under a delegation that was not made to its signer.
  DELEGATION_NOT_FOUND: DENIED,
  CAPABILITY_AMBIGUOUS: JSON_RPC.INVALID_PARAMS,
});

const TYPES = new Map(
  DenialTypeSchema.values.map(({ name, number }) => [
    name.slice("DENIAL_TYPE_".length).toLowerCase(),
    number as DenialType,
  ]),
);

/**
 * A refused token in the form of the text: its data says what type the denial has, what was asked for and, for a proved
 * holder, what the token grants (DelegateOS 11.2). Any other fault passes.
 *
 * @param granted as grantedTo answers it
 */
export function asDenial(thrown: unknown, requested?: Capability, granted?: CapabilityList): unknown {
  if (thrown instanceof WireFault) return thrown;
  const refusal = refusalIn(thrown);
  const [denial, detail] = denialIn(refusal);
  if (denial === undefined) return thrown;
  const data: ToolDenial = create(ToolDenialSchema, {
    type: TYPES.get(denial) ?? DenialType.INTERNAL_CONTEXT,
    ...(requested === undefined ? {} : { requested }),
    ...(granted === undefined ? {} : { granted }),
    ...(detail === undefined ? {} : { detail: detail.slice(0, 256) }),
  });
  return new WireFault(refusal, encode(ToolDenialSchema, data));
}

/**
 * What the caller's own token grants, where it was denied for granting too little: that comes last of what is judged
 * (DelegateOS 10.1), so that its holder has proved to be the holder. Undefined for every other fault.
 */
export async function grantedTo(
  { tokens }: Pick<Clients, "tokens">,
  thrown: unknown,
  call: WireCall,
): Promise<CapabilityList | undefined> {
  const { reason, metadata } = refusalIn(thrown);
  if (reason !== ErrorReason.TOKEN_DENIED || metadata.denial !== "capability_not_granted") return undefined;
  const authorization = new Headers(call.asCaller.headers).get("authorization") ?? "";
  const [, token] = /^DPoP +([A-Za-z0-9_-]+) *$/i.exec(authorization) ?? [];
  if (token === undefined) return undefined;
  const presented = create(SerializedDCTSchema, { token, format: "delegateos-sjt-v1" });
  const { result } = await tokens.inspectToken({ token: presented }, call.aside);
  if (result.case !== "scope") return undefined;
  return create(CapabilityListSchema, { capabilities: result.value.capabilities });
}

/** The denial's word in a refusal, and what it says more; undefined for a refusal that denies no authority. */
function denialIn({
  reason,
  message,
  metadata,
}: DeputeError): [word: string | undefined, detail: string | undefined] {
  if (reason === ErrorReason.TOKEN_DENIED) return [metadata.denial ?? "", metadata.detail];
  return reason === ErrorReason.DELEGATION_NOT_FOUND
    ? ["invalid_signature", message]
    : [undefined, undefined];
}
