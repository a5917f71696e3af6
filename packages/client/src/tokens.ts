import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { RevocationScope } from "@depute/contracts/delegateos/v0/revocation_pb";
import {
  type Capability,
  createRevocation,
  type Keypair,
  newId,
  portableEngine,
  SJT_FORMAT,
} from "@depute/dct";
import type { DeputeClients } from "./clients.ts";
import type { NarrowedToken } from "./narrow.ts";

/** The terms of a token that the platform's root grants. */
export interface Grant {
  /** The principal of the holder. */
  readonly delegatee: string;
  readonly capabilities: readonly Capability[];
  /** Id of the contract that the token is for. Default: a new id. */
  readonly contractId?: string;
  /** Number of times that the token may be attenuated. Default: 1. */
  readonly maxChainDepth?: number;
  /** Maximum cost of the work under the token, above 0. 1 USD is 100,000,000 microcents. */
  readonly maxBudgetMicrocents: number;
  /** Lifetime in milliseconds. Default: ten minutes. */
  readonly lifetimeMs?: number;
}

const LIFETIME_MS = 600_000;

/**
 * Mints a token.
 *
 * @throws ConnectError if the call fails, e.g. because the caller may not mint tokens; RangeError for a budget that is
 * not a whole number; Error if the response has no token
 */
export async function mintToken(clients: DeputeClients, grant: Grant): Promise<NarrowedToken> {
  const { token, revocationId } = await clients.tokens.mintToken({
    delegatee: grant.delegatee,
    capabilities: [...grant.capabilities],
    contractId: grant.contractId ?? newId("ct"),
    maxChainDepth: grant.maxChainDepth ?? 1,
    maxBudgetMicrocents: BigInt(grant.maxBudgetMicrocents),
    lifetime: durationFromMs(grant.lifetimeMs ?? LIFETIME_MS),
  });
  if (token === undefined) throw new Error("the answer has no token; check the platform's version");
  return { token: token.token, revocationId };
}

/**
 * Revokes a block of a token, and so every token that contains the block.
 *
 * @param revoker the key that signed the block or a block above it, or the key of the block's holder
 * @returns the number of the revocation in the platform's log; 0 while the platform cannot yet check that the revoker
 * may revoke the block
 */
export async function revokeToken(
  clients: DeputeClients,
  { token, revocationId }: NarrowedToken,
  revoker: Keypair,
): Promise<number> {
  const entry = createRevocation(portableEngine, revocationId, "chain", revoker);
  const { revocation } = await clients.revocations.revokeToken({
    entry: { ...entry, scope: RevocationScope.CHAIN },
    token: { token, format: SJT_FORMAT },
  });
  return Number(revocation?.sequence ?? 0n);
}
