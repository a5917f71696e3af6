import type { GetAgentCardResponse } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { fromTimestamp } from "@depute/core";
import { hexOf } from "../../edge/hex.ts";
import type { Answer } from "../../edge/route.ts";
import type { Validated } from "../../edge/validated.ts";

/**
 * An agent card depends on the caller's permissions. So only the client's own cache may store it, and must revalidate
 * it before each use.
 */
const CACHE_CONTROL = "private, no-cache";

/** An agent's card as a document with its validators. (RFC 9110 section 8.8) */
export function cardDocument({ card, digest, updateTime }: GetAgentCardResponse): Validated {
  return {
    bytes: card,
    contentType: "application/json",
    cacheControl: CACHE_CONTROL,
    etag: `"${hexOf(digest)}"`,
    modifiedMs: updateTime === undefined ? 0 : fromTimestamp(updateTime),
  };
}

/** An A2A 1.0 card as an answer. Its reader may use it for a minute, then has to revalidate it. (A2A 8.6.1) */
export function cardAnswer(card: GetAgentCardResponse): Answer {
  return { kind: "document", document: { ...cardDocument(card), cacheControl: "private, max-age=60" } };
}
