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
} from "@depute/contracts/depute/tokens/v1/token_verification_pb";
import { type Clock, DeputeError, ErrorReason } from "@depute/core";
import { ownOptions } from "./call-headers.ts";
import { blocksKey, chargeKey, principalKey, roleCheckKey, type WithValues } from "./call-values.ts";
import { type Caller, callerOf, grantedRolesOf, organizationOf } from "./caller.ts";
import type { RoleName } from "./identities/identities-schema.ts";

/** The identity that a caller's credentials prove. */
export interface Identity {
  /**
   * The caller's principal: a public key in base64url, a principal that the credentials file or the identities file
   * names, or `local`.
   */
  principal: string;
  /**
   * Whether the caller is `local`. A call is `local` without credentials on an open loopback server, and when the
   * platform itself makes it.
   */
  local: boolean;
  /** The organization that owns the records that the caller creates; empty for none. */
  organization: string;
  /**
   * The roles that the credentials file or the identities file grants to the caller; absent for none. Settings and
   * records may give the caller further rights.
   */
  roles?: readonly RoleName[];
  /** The roles that the identities file grants for the records of `organization`; absent for none. */
  organizationRoles?: readonly RoleName[];
}

/** A capability that a call requires, in the form in which a DelegateOS token grants it. */
export interface Right {
  namespace: string;
  action: string;
  resource: string;
}

/** Further conditions that the presented token must meet for a call. (DelegateOS 5.2) */
export interface Binding {
  contractId?: string;
  /** Capabilities that the token must grant, each in the form `namespace:action`. */
  requiredCapabilities?: readonly string[];
}

/** A caller whose credentials the platform has accepted for the call. */
export interface Authorised extends Identity {
  /** The scope that the caller's token grants; absent if the caller presented no token. */
  scope?: AuthorizedScope;
  /** The blocks of the caller's token, starting with the authority block; empty if the caller presented no token. */
  blocks: readonly TokenBlock[];
}

/** Identifies callers and checks their permissions. The tokens service decides. */
export interface Authority {
  /**
   * Identifies the caller of a method that requires no capability of a token.
   *
   * @throws DeputeError UNAUTHENTICATED (also for an invalid proof without a token), TOKEN_DENIED (an invalid proof
   * with a token), LIMIT_EXCEEDED (a quota of the caller is used up), CALLER_NOT_ALLOWED (a role is missing),
   * DEPENDENCY_UNAVAILABLE
   */
  identify(context: HandlerContext): Promise<Identity>;
  /**
   * Checks whether the caller's token grants a capability. A caller without a token passes with its identity, and the
   * method decides what that identity may do.
   *
   * @throws DeputeError with the reasons of {@link identify}; TOKEN_DENIED also if the token does not grant the
   * capability
   */
  authorise(context: HandlerContext, right: Right, binding?: Binding): Promise<Authorised>;
}

/**
 * Whether a caller may act for `principal`. `local` may act for any principal. Every other caller may act only
 * for its own principal.
 */
export function mayActFor(identity: Identity, principal: string): boolean {
  return identity.local || (principal !== "" && identity.principal === principal);
}

/** The credentials of a caller of the kind `bound`, in the form of a VerifyProof request. */
export interface PresentedProof {
  readonly proof: HolderProof;
  readonly token?: SerializedDCT;
}

/** The result in the response of VerifyProof: a principal or a denial. */
export type ProofVerdict = VerifyProofResponse["result"];

/**
 * Derives the caller's identity from its credentials. Every service uses this function, so all services derive the same
 * identity.
 *
 * @throws DeputeError with the reasons of {@link Authority.identify}, and the errors of `verifyProof`
 */
export async function identityOf(
  context: WithValues,
  verifyProof: (presented: PresentedProof) => Promise<ProofVerdict>,
): Promise<Identity> {
  const caller = callerOf(context);
  const { kind, principal, organization = "", token, organizationRoles } = caller;
  if (kind === "message") throw new DeputeError(ErrorReason.UNAUTHENTICATED, "credentials are required");
  if (kind !== "bound") {
    const roles = kind === "local" ? {} : rolesOf(context, principal);
    const local = kind === "local";
    return { principal, local, organization, ...roles, ...(organizationRoles && { organizationRoles }) };
  }
  const verdict = await verifyProof({
    proof: proofOf(caller),
    ...(token !== undefined && { token: tokenOf(token) }),
  });
  if (verdict.case !== "principal") throw callerDenied(caller, verdict.value);
  return provenIdentity(context, verdict.value);
}

/**
 * Returns the identity of a caller whose principal was proven in this call.
 *
 * @throws DeputeError LIMIT_EXCEEDED (a quota of the caller is used up), CALLER_NOT_ALLOWED (the caller has no role
 * that the method requires)
 */
export function provenIdentity(context: WithValues, principal: string): Identity {
  noteProven(context, principal);
  context.values.get(roleCheckKey)?.(principal);
  const organization = organizationOf(context, principal);
  return { principal, local: false, organization, ...rolesOf(context, principal) };
}

/**
 * Stores the proven principal in the call's values, and counts the call against the principal's quotas, at most once.
 *
 * @param principal empty if the token is denied; the call is then not counted
 * @throws DeputeError LIMIT_EXCEEDED
 */
function noteProven(context: WithValues, principal: string): void {
  const { values } = context;
  values.set(principalKey, principal);
  if (principal !== "") values.get(chargeKey)?.(principal, organizationOf(context, principal));
}

function rolesOf(context: WithValues, principal: string): Pick<Identity, "roles"> {
  const roles = grantedRolesOf(context, principal);
  return roles.length === 0 ? {} : { roles };
}

/** Whether the credentials file or the identities file grants the role to the caller. */
export function hasRole({ roles = [] }: Pick<Identity, "roles">, role: RoleName): boolean {
  return roles.includes(role);
}

/** Creates an authority that asks the tokens service behind `transport`. */
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
      noteProven(context, principal);
      context.values.set(
        blocksKey,
        blocks.map(({ revocationId }) => revocationId),
      );
      if (result.case === "scope") {
        return { ...provenIdentity(context, principal), scope: result.value, blocks };
      }
      throw tokenDenied(result.value);
    },
  };
}

/**
 * Returns the error for a denied token. Its metadata has the denial's type and detail, and never the token's
 * capabilities.
 */
export function tokenDenied(denial: DenialReason | undefined): DeputeError {
  const type = denialWord(denial?.type ?? DenialType.INTERNAL_CONTEXT);
  const detail = denial?.detail ?? "";
  const message = detail === "" ? `the token is denied: ${type}` : `the token is denied: ${type} (${detail})`;
  const metadata = { denial: type, ...(detail !== "" && { detail }) };
  return new DeputeError(ErrorReason.TOKEN_DENIED, message, { metadata });
}

/**
 * Returns the error for an invalid proof: TOKEN_DENIED for a proof with a token, and for the denial INTERNAL_CONTEXT;
 * otherwise UNAUTHENTICATED, because a proof without a token only identifies the caller (RFC 9449 7.1). The message of
 * UNAUTHENTICATED names the invalid claim.
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
  const [description, expected] = proofFault(fault, htm, htu);
  const message = `the holder proof is not valid: ${description}; send a new proof for this call`;
  return new DeputeError(ErrorReason.UNAUTHENTICATED, message, {
    metadata: {
      denial: denialWord(type),
      ...(detail !== "" && { detail }),
      ...(claim !== "" && { claim }),
      ...(expected !== undefined && { expected }),
    },
  });
}

/**
 * Describes the fault of a proof. The second value is the content that the invalid claim must have; absent if unknown.
 */
function proofFault(fault: string, htm: string, htu: string): [description: string, expected?: string] {
  switch (fault) {
    case "htm":
      return [`htm is not ${htm}`, htm];
    case "htu":
      return [`htu is not ${htu}`, htu];
    case "iat":
      return ["iat is not a time in seconds, is too old, or is ahead of the platform's clock"];
    case "jti":
      return ["jti is not 8 to 128 printable characters"];
    case "replayed":
      return ["jti was used before, or may have been used before a restart"];
    case "ath":
      return ["ath names a token, but the call has no token"];
    case "":
      return ["it is missing"];
    default:
      return [`${fault} is not valid`];
  }
}

/** Returns the type of a denial in DelegateOS's spelling, such as `capability_not_granted`. */
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
