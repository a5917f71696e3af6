import type { MintTokenRequest } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { type CreateParams, DEFAULT_LIFETIME_MS, formatTime, newId } from "@depute/dct";

/**
 * What a new root token says. Its times are the service's, never the caller's.
 *
 * @param now milliseconds since 1970
 */
export function mintParams(request: MintTokenRequest, now: number): CreateParams {
  const lifetimeMs = request.lifetimeSeconds === 0 ? DEFAULT_LIFETIME_MS : request.lifetimeSeconds * 1000;
  return {
    delegatee: request.delegatee,
    capabilities: request.capabilities.map(({ namespace, action, resource }) => {
      return { namespace, action, resource };
    }),
    contractId: request.contractId,
    delegationId: request.delegationId === "" ? newId("del") : request.delegationId,
    maxChainDepth: request.maxChainDepth,
    maxBudgetMicrocents: Number(request.maxBudgetMicrocents),
    issuedAt: formatTime(now),
    expiresAt: formatTime(now + lifetimeMs),
  };
}
