import type { GetAgentCardResponse } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { fromTimestamp } from "@depute/core";
import { hexOf } from "../../edge/hex.ts";
import type { Answer } from "../../edge/route.ts";
import type { Validated } from "../../edge/validated.ts";

/**
 * An agent card depends on the caller's permissions. So only the client's own cache may store the card. The cache must
 * revalidate it before each use.
 */
const CACHE_CONTROL = "private, no-cache";

/** Returns an agent's card as an HTTP document with entity tag and date. (RFC 9110 section 8.8) */
export function cardDocument({ card, digest, updateTime }: GetAgentCardResponse): Validated {
  return {
    bytes: card,
    contentType: "application/json",
    cacheControl: CACHE_CONTROL,
    etag: `"${hexOf(digest)}"`,
    modifiedMs: updateTime === undefined ? 0 : fromTimestamp(updateTime),
  };
}

/**
 * Creates the answer with an A2A 1.0 card. The client may cache the card for a minute. It must then revalidate the
 * card. (A2A 8.6.1)
 */
export function cardAnswer(card: GetAgentCardResponse): Answer {
  return { kind: "document", document: { ...cardDocument(card), cacheControl: "private, max-age=60" } };
}
