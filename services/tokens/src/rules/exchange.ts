import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type ExchangeTokenRequest,
  type MintTokenRequest,
  MintTokenRequestSchema,
} from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { type Capability, DEFAULT_LIFETIME_MS, isSubset, newId } from "@depute/dct";
import { spanMs } from "./documents.ts";

/** The bounds of the tokens that an identity may get in a token exchange. */
export interface ExchangeBounds {
  readonly capabilities: readonly Capability[];
  readonly maxBudgetMicrocents: number;
  readonly maxLifetimeSeconds?: number;
  readonly maxChainDepth?: number;
}

const DEFAULT_MAX_LIFETIME_SECONDS = 3600;

/**
 * The requested token. If the request omits a member, its value comes from the identity's bounds; the default lifetime
 * is at most DEFAULT_LIFETIME_MS.
 */
interface Requested {
  readonly capabilities: readonly Capability[];
  readonly budget: bigint;
  readonly lifetimeMs: number;
  readonly depth: number;
}

/**
 * Returns the mint request that carries out a token exchange.
 *
 * @param bounds the bounds of the identity; undefined for none
 * @param isMinter whether the identity may mint without bounds; its request then names the capabilities
 * @param delegatee the principal that the holder proof proves
 * @param requestId identifies the exchange; unique for the identity
 * @param maxLifetimeMs the longest lifetime that the service allows
 * @throws DeputeError CALLER_NOT_ALLOWED if the identity has no bounds and is not a minter, ATTENUATION_VIOLATION for a
 * request beyond the bounds, INVALID_REQUEST for a request without a budget from a minter without bounds
 */
export function mintOfExchange(
  request: ExchangeTokenRequest,
  { bounds, isMinter }: { bounds: ExchangeBounds | undefined; isMinter: boolean },
  { delegatee, requestId, maxLifetimeMs }: { delegatee: string; requestId: string; maxLifetimeMs: number },
): MintTokenRequest {
  if (bounds === undefined && !isMinter) {
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "the identity may not mint tokens; an operator adds `mint` to it in the identities file",
    );
  }
  const requested = withDefaults(request, bounds, maxLifetimeMs);
  if (!isMinter && bounds !== undefined) assertWithin(requested, bounds);
  const init: MessageInitShape<typeof MintTokenRequestSchema> = {
    ...{ requestId, delegatee, contractId: request.contractId || newId("ct") },
    capabilities: [...requested.capabilities],
    maxBudgetMicrocents: requested.budget,
    maxChainDepth: requested.depth,
    lifetime: durationFromMs(requested.lifetimeMs),
    ...(request.binding !== undefined && { binding: request.binding }),
  };
  return create(MintTokenRequestSchema, init);
}

function withDefaults(
  request: ExchangeTokenRequest,
  bounds: ExchangeBounds | undefined,
  maxLifetimeMs: number,
): Requested {
  const { capabilities, maxBudgetMicrocents, maxChainDepth } = request;
  const longestMs = Math.min(lifetimeOf(bounds), DEFAULT_LIFETIME_MS, maxLifetimeMs);
  return {
    capabilities: (capabilities.length > 0 ? capabilities : (bounds?.capabilities ?? [])).map(
      ({ namespace, action, resource }) => ({ namespace, action, resource }),
    ),
    budget: maxBudgetMicrocents ?? largestBudget(bounds),
    lifetimeMs: spanMs(request.lifetime) || longestMs,
    depth: maxChainDepth ?? bounds?.maxChainDepth ?? 0,
  };
}

/**
 * Returns the budget, in microcents, of a token whose request names none: the bound of the identity.
 *
 * @throws DeputeError INVALID_REQUEST if the identity has no bounds; the request must then name a budget
 */
function largestBudget(bounds: ExchangeBounds | undefined): bigint {
  if (bounds === undefined) throw invalid("max_budget_microcents", "is required: the identity has no bounds");
  return BigInt(bounds.maxBudgetMicrocents);
}

function lifetimeOf(bounds: ExchangeBounds | undefined): number {
  return (bounds?.maxLifetimeSeconds ?? DEFAULT_MAX_LIFETIME_SECONDS) * 1000;
}

function assertWithin({ capabilities, budget, lifetimeMs, depth }: Requested, bounds: ExchangeBounds): void {
  for (const [i, capability] of capabilities.entries()) {
    if (!bounds.capabilities.some((most) => isSubset(capability, most))) throw beyond(`capabilities[${i}]`);
  }
  if (budget > BigInt(bounds.maxBudgetMicrocents)) throw beyond("max_budget_microcents");
  if (lifetimeMs > lifetimeOf(bounds)) throw beyond("lifetime");
  if (depth > (bounds.maxChainDepth ?? 0)) throw beyond("max_chain_depth");
}

function beyond(field: string): DeputeError {
  const description = "is more than the identity may mint; request less";
  return new DeputeError(ErrorReason.ATTENUATION_VIOLATION, `${field} ${description}`, {
    metadata: { detail: field },
    violations: [{ field, description }],
  });
}
