import { toJson } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import { canonicalBytes } from "@depute/core";
import { ownerRecord } from "./agent.ts";
import type { Sha256Hex } from "./version-hash.ts";

// Maximum nesting of a record in canonical JSON. No record reaches it, because protobuf's own limit is lower.
const MAX_DEPTH = 256;

/**
 * Returns the digest of an agent's version: SHA-256, 64 hex digits in lower case. The hashed text is the canonical JSON
 * (RFC 8785) of the record's protobuf JSON. It omits the members that the registry sets.
 *
 * @throws CanonicalError when a string or number has no JSON form
 */
export function recordDigest(agent: Agent, sha256: Sha256Hex): string {
  return sha256(canonicalBytes(toJson(AgentSchema, ownerRecord(agent)), MAX_DEPTH));
}
