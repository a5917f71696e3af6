import { create } from "@bufbuild/protobuf";
import { createClient, type HandlerContext, type Transport } from "@connectrpc/connect";
import type { AuthorizedScope, DenialReason } from "@depute/contracts/delegateos/v0/delegation_pb";
import { DenialType, DenialTypeSchema } from "@depute/contracts/delegateos/v0/delegation_pb";
import { type SerializedDCT, SerializedDCTSchema } from "@depute/contracts/delegateos/v0/token_pb";
import { TokenService, type VerifyProofResponse } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import {
  type HolderProof,
  HolderProofSchema,
  type TokenBlock,
} from "@depute/contracts/depute/tokens/v1/verification_pb";
import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import { principalKey, type WithValues } from "./call-values.ts";
import { type Caller, callerOf } from "./caller.ts";
import { ownOptions } from "./forward.ts";

/** Who a caller was found to be. */
export interface Identity {
  /** A public key in base64url, a configured credential's principal, or `local`. */
  principal: string;
  /** True for `local`: no credentials, on an open loopback or from the platform itself. */
  local: boolean;
}

/** A right, as a DelegateOS token grants it. */
export interface Right {
  namespace: string;
  action: string;
  resource: string;
}

/** What a presented token is further held to. (DelegateOS 5.2) */
export interface Binding {
  contractId?: string;
  /** Each `namespace:action`. */
  requiredCapabilities?: readonly string[];
}

/** A caller that may. */
export interface Authorised extends Identity {
  /** What its token grants; absent for a caller without one. */
  scope?: AuthorizedScope;
  /** The token's blocks, the authority first; empty without one. */
  blocks: readonly TokenBlock[];
}

/** How services learn who calls and whether they may; the tokens service decides. */
export interface Authority {
  /**
   * Says who calls, for calls that need no right of a token.
   *
   * @throws DeputeError UNAUTHENTICATED (also for a proof without a token that does not count), TOKEN_DENIED (the proof
   *   beside a token does not count), DEPENDENCY_UNAVAILABLE
   */
  identify(context: HandlerContext): Promise<Identity>;
  /**
   * Holds the caller's token to one right. A caller without a token is let through as who it is: what it may do then is
   * a matter of its identity.
   *
   * @throws DeputeError as identify
   */
  authorise(context: HandlerContext, right: Right, binding?: Binding): Promise<Authorised>;
}

/** Whether a caller may act as the owner of `principal`: `local` for anybody, others for themselves. */
export function mayActFor(identity: Identity, principal: string): boolean {
  return identity.local || (principal !== "" && identity.principal === principal);
}

/** A bound caller's credentials, as VerifyProof takes them. */
export interface PresentedProof {
  readonly proof: HolderProof;
  readonly token?: SerializedDCT;
}

/** The answer of VerifyProof. */
export type ProofVerdict = VerifyProofResponse["result"];

/**
 * The one rule that derives the caller's identity from its credentials.
 *
 * @param verifyProof the tokens service's judgement of a bound caller's proof
 * @throws DeputeError as {@link Authority.identify}
 */
export async function identityOf(
  context: WithValues,
  verifyProof: (presented: PresentedProof) => Promise<ProofVerdict>,
): Promise<Identity> {
  const caller = callerOf(context);
  const { kind, principal, token } = caller;
  if (kind === "message") throw new DeputeError(ErrorReason.UNAUTHENTICATED, "credentials are required");
  if (kind !== "bound") return { principal, local: kind === "local" };
  const verdict = await verifyProof({
    proof: proofOf(caller),
    ...(token !== undefined && { token: tokenOf(token) }),
  });
  if (verdict.case !== "principal") throw callerDenied(caller, verdict.value);
  context.values.set(principalKey, verdict.value);
  return { principal: verdict.value, local: false };
}

/** Asks the tokens service behind `transport`. */
export function createAuthority(transport: Transport, clock: Clock): Authority {
  const tokens = createClient(TokenService, transport);

  const identify = (context: HandlerContext) =>
    identityOf(
      context,
      async (presented) => (await tokens.verifyProof(presented, ownOptions(context, clock))).result,
    );

  return {
    identify,
    async authorise(context, right, binding = {}) {
      const caller = callerOf(context);
      if (caller.token === undefined) return { ...(await identify(context)), blocks: [] };
      const { result, principal, blocks } = await tokens.verifyToken(
        {
          token: tokenOf(caller.token),
          proof: proofOf(caller),
          requested: right,
          contractId: binding.contractId ?? "",
          requiredCapabilities: [...(binding.requiredCapabilities ?? [])],
        },
        ownOptions(context, clock),
      );
      context.values.set(principalKey, principal);
      if (result.case === "scope") return { principal, local: false, scope: result.value, blocks };
      throw tokenDenied(result.value);
    },
  };
}

/** The refusal of a token that was denied. What it grants is not repeated: the metadata says the type and the detail. */
export function tokenDenied(denial: DenialReason | undefined): DeputeError {
  const type = denialWord(denial?.type ?? DenialType.INTERNAL_CONTEXT);
  const detail = denial?.detail ?? "";
  const message = detail === "" ? `the token is denied: ${type}` : `the token is denied: ${type} (${detail})`;
  const metadata = { denial: type, ...(detail !== "" && { detail }) };
  return new DeputeError(ErrorReason.TOKEN_DENIED, message, { metadata });
}

/**
 * The refusal of who calls: its proof does not count. Beside a token the token is denied; a proof alone says who calls, so
 * that the caller is not known (RFC 9449 7.1). The message names the member at fault.
 */
export function callerDenied(
  { token, htm, htu }: Pick<Caller, "token" | "htm" | "htu">,
  denial: DenialReason | undefined,
): DeputeError {
  const type = denial?.type ?? DenialType.INTERNAL_CONTEXT;
  if (token !== undefined || type === DenialType.INTERNAL_CONTEXT) return tokenDenied(denial);
  const { detail = "" } = denial ?? {};
  const claim = type === DenialType.REPLAYED_PROOF ? "jti" : detail;
  const fault = type === DenialType.REPLAYED_PROOF ? "replayed" : detail;
  const [what, expected] = proofFault(fault, htm, htu);
  const message = `the holder proof does not count: ${what}; send a new proof for this call`;
  return new DeputeError(ErrorReason.UNAUTHENTICATED, message, {
    metadata: {
      denial: denialWord(type),
      ...(detail !== "" && { detail }),
      ...(claim !== "" && { claim }),
      ...(expected !== undefined && { expected }),
    },
  });
}

/** What is wrong with a proof, and what the claim at fault has to be. */
function proofFault(fault: string, htm: string, htu: string): [what: string, expected?: string] {
  switch (fault) {
    case "htm":
      return [`htm is not ${htm}`, htm];
    case "htu":
      return [`htu is not ${htu}`, htu];
    case "iat":
      return ["iat is no time in seconds, too old, or ahead of the platform's clock"];
    case "jti":
      return ["jti is not 8 to 128 printable characters"];
    case "replayed":
      return ["jti was used before, or may have been before a restart"];
    case "ath":
      return ["ath names a token, and the call brings none"];
    case "":
      return ["there is none"];
    default:
      return [`${fault} is at fault`];
  }
}

/** A denial's type as DelegateOS writes it: `capability_not_granted`. */
export function denialWord(type: DenialType): string {
  const name = DenialTypeSchema.value[type]?.name ?? "DENIAL_TYPE_INTERNAL_CONTEXT";
  return name.slice("DENIAL_TYPE_".length).toLowerCase();
}

function tokenOf(token: string) {
  return create(SerializedDCTSchema, { token, format: "delegateos-sjt-v1" });
}

function proofOf(caller: Caller) {
  return create(HolderProofSchema, { jwt: caller.proof ?? "", method: caller.htm, target: caller.htu });
}
