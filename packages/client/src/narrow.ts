import {
  attenuateToken,
  type Capability,
  type Keypair,
  parseToken,
  portableEngine,
  revocationId,
  serialiseToken,
  TokenError,
} from "@depute/dct";

/** Limits for the token's next holder. Without a limit here, the limit in the token still applies. */
export interface Narrowing {
  /** The principal of the next holder. */
  readonly delegatee: string;
  /** The capabilities that remain. An empty list allows nothing. */
  readonly capabilities?: readonly Capability[];
  readonly maxBudgetMicrocents?: number;
  /** Lifetime of the new token in milliseconds, beginning now. */
  readonly lifetimeMs?: number;
  /** Number of times that the new token may be attenuated further. */
  readonly maxChainDepth?: number;
}

/** A token, and the id with which it can be revoked. */
export interface NarrowedToken {
  readonly token: string;
  readonly revocationId: string;
}

/**
 * Attenuates a token for its next holder, offline (DelegateOS 3.4).
 *
 * @param token the text of the token; its last delegatee must be the key's principal
 * @throws TokenError for an invalid token, for a key that is not the holder's, or for limits wider than the
 *   token's
 */
export function narrowToken(token: string, key: Keypair, narrowing: Narrowing): NarrowedToken {
  const parsed = parseToken(token);
  if (!parsed.ok) throw new TokenError(parsed.denial);
  const { capabilities, lifetimeMs, ...limits } = narrowing;
  const narrowed = attenuateToken(
    portableEngine,
    parsed.token,
    {
      ...limits,
      ...(capabilities && { allowedCapabilities: [...capabilities] }),
      ...(lifetimeMs !== undefined && { expiresAt: new Date(Date.now() + lifetimeMs).toISOString() }),
    },
    key,
  );
  const last = narrowed.attenuations.at(-1) ?? narrowed.authority;
  return { token: serialiseToken(narrowed).token, revocationId: revocationId(portableEngine, last) };
}
