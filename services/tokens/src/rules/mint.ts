import type { MintTokenRequest } from "@depute/contracts/depute/tokens/v1/token_service_pb";
import { type CreateParams, DEFAULT_LIFETIME_MS, formatTime, newId } from "@depute/dct";
import { spanMs } from "./documents.ts";

/**
 * Returns the content of a new root token. The request states only the lifetime; the lifetime begins at the time of the
 * service's clock.
 *
 * @param now epoch milliseconds
 */
export function mintParams(request: MintTokenRequest, now: number): CreateParams {
  const lifetimeMs = spanMs(request.lifetime) || DEFAULT_LIFETIME_MS;
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
