import type { JsonValue } from "@bufbuild/protobuf";
import { type AgentManifest, AgentManifestSchema } from "@depute/contracts/cap/v1/manifest_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { textOfFile } from "@depute/service";
import { decodeValid, refusalOf } from "@depute/wire";
import { compilePublished } from "@depute/wire/json-schema";

/** The published schema of manifests. */
export const AGENT_SCHEMA = textOfFile(new URL("./documents/agent.schema.json", import.meta.url));

/**
 * Checks a manifest by CAP's schema and by Depute's additional rules. Throws DeputeError INVALID_REQUEST,
 * LIMIT_EXCEEDED.
 */
export type ReadManifest = (document: JsonValue) => AgentManifest;

/**
 * Returns a function that checks manifests against CAP's compiled schema, then against the rules of Depute's contract.
 * These rules refuse two faults that the schema allows: an id that does not match the pattern, and a rule for an agent
 * that `allowed_agents` does not contain.
 *
 * @throws Error for an invalid schema
 */
export function compileManifests(): ReadManifest {
  const violationsOf = compilePublished(JSON.parse(AGENT_SCHEMA));
  return (document) => {
    const faults = violationsOf(document).map(({ path, message }) => ({ field: path, description: message }));
    if (faults.length > 0) {
      const text = faults.map(({ field, description }) => `${field} ${description}`.trim()).join("; ");
      throw new DeputeError(ErrorReason.INVALID_REQUEST, text, { violations: faults });
    }
    const decoded = decodeValid(AgentManifestSchema, document);
    if (!decoded.ok) throw refusalOf(...decoded.errors);
    return decoded.message;
  };
}
