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
import type { Clients } from "../../edge/clients.ts";
import { errorTable } from "../../edge/error-table.ts";
import { refusalIn, WireFault } from "../../edge/fault.ts";
import { JSON_RPC } from "../../edge/own-codes.ts";
import type { WireCall } from "../../edge/wire-call.ts";

/** The only code that DelegateOS defines (DelegateOS 11.2). */
export const DENIED = { code: -32001, message: "DCT verification failed" } as const;

/** The code for each reason: DelegateOS's only code or a code of JSON-RPC if one fits, otherwise Depute's own code. */
export const DELEGATEOS_ERRORS = errorTable({
  TOKEN_DENIED: DENIED,
  // DELEGATION_NOT_FOUND is also the reason if a principal other than the delegatee signed a statement about a
  // delegation. DelegateOS treats this case as a denial.
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
 * Converts an error that denies a token to DelegateOS's form. The data contains the denial's type and the requested
 * capability. If the holder has proved possession, the data also contains the capabilities that the token grants
 * (DelegateOS 11.2). Any other fault is returned unchanged.
 *
 * @param granted the result of grantedTo
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
 * Returns the capabilities that the caller's own token grants, if the token was denied because it does not grant the
 * required capability. The tokens service checks capabilities last (DelegateOS 10.1), so the holder has already proved
 * possession. Returns undefined for any other error.
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

/** Returns the type and the details of the denial in an error; undefined if the error is not about a token or proof. */
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
