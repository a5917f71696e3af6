import type { Capability } from "@depute/dct";
import { MAX_PROJECTION_MS } from "./jwt-keys.ts";

/** The claim `act` of a projection: an actor, and the actor before it (RFC 8693 section 4.1). */
export interface Actor {
  readonly sub: string;
  readonly act?: Actor;
}

/** The facts about a verified chain from which the claims are made. Times are epoch milliseconds. */
export interface ProjectedChain {
  /** The platform's public URL, for the claim `iss`. */
  readonly issuer: string;
  readonly audience: string;
  /** The delegatees of the blocks, that of the root block first. */
  readonly delegatees: readonly string[];
  /** The subject on whose behalf the platform minted the root block; absent without a subject. */
  readonly onBehalfOf?: { readonly issuer: string; readonly subject: string; readonly principal: string };
  /** The RFC 7638 thumbprint of the holder's key. */
  readonly thumbprint: string;
  readonly capabilities: readonly Capability[];
  readonly delegationId: string;
  readonly expiresAt: number;
  readonly jti: string;
}

/**
 * Returns the claims of a projection (RFC 9068 section 2.2). `sub` is the principal of `onBehalfOf` or, if it is
 * absent, the delegatee of the root block. `act` names the last delegatee. The delegatee before it is in the nested
 * `act`, and so on up to the subject. Without a delegatee after the subject, there is no `act`.
 *
 * @param lifetimeMs the requested lifetime in milliseconds; 0 for the maximum
 */
export function projectedClaims(chain: ProjectedChain, lifetimeMs: number, now: number) {
  const { issuer, audience, delegatees, onBehalfOf, capabilities, delegationId, jti } = chain;
  const [first = ""] = delegatees;
  const actors = onBehalfOf === undefined ? delegatees.slice(1) : delegatees;
  const act = actors.reduce<Actor | undefined>(
    (before, sub) => ({ sub, ...(before !== undefined && { act: before }) }),
    undefined,
  );
  const longest = Math.min(lifetimeMs || MAX_PROJECTION_MS, MAX_PROJECTION_MS);
  return {
    ...{ iss: issuer, aud: audience, jti },
    sub: onBehalfOf?.principal ?? first,
    client_id: delegatees.at(-1) ?? "",
    iat: Math.floor(now / 1000),
    exp: Math.floor(Math.min(now + longest, chain.expiresAt) / 1000),
    ...(onBehalfOf !== undefined && {
      sub_id: { format: "iss_sub", iss: onBehalfOf.issuer, sub: onBehalfOf.subject },
    }),
    ...(act !== undefined && { act }),
    cnf: { jkt: chain.thumbprint },
    authorization_details: capabilities.map(({ namespace, action, resource }) => ({
      ...{ type: "delegateos_capability", namespace, action, resource },
    })),
    delegation_id: delegationId,
  };
}
