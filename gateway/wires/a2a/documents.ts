import type { GetAgentCardResponse } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { fromTimestamp } from "@depute/core";
import type { Validated } from "../../src/validated.ts";

/** A card depends on the caller's sight, so only the caller's own cache may keep it, and it asks again. */
const CACHE_CONTROL = "private, no-cache";

/** An agent's card as a document with its validators. (RFC 9110 section 8.8) */
export function cardDocument({ card, digest, updateTime }: GetAgentCardResponse): Validated {
  return {
    bytes: card,
    contentType: "application/json",
    cacheControl: CACHE_CONTROL,
    etag: `"${digest}"`,
    modifiedMs: updateTime === undefined ? 0 : fromTimestamp(updateTime),
  };
}
