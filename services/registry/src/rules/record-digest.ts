import { toJson } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import { canonicalBytes } from "@depute/core";
import { ownersPart } from "./agent.ts";
import type { Sha256Hex } from "./version-hash.ts";

// Deeper than protobuf's own limit on nesting.
const MAX_DEPTH = 256;

/**
 * The digest that a version of an agent is told by: SHA-256, 64 lower-case hex digits, of the canonical JSON (RFC 8785) of
 * the record's protobuf JSON, without the members that the registry sets.
 *
 * @throws CanonicalError when a text or a number of it has no JSON form
 */
export function recordDigest(agent: Agent, sha256: Sha256Hex): string {
  return sha256(canonicalBytes(toJson(AgentSchema, ownersPart(agent)), MAX_DEPTH));
}
