import { readFileSync } from "node:fs";
import type { JsonValue } from "@bufbuild/protobuf";
import { type AgentManifest, AgentManifestSchema } from "@depute/contracts/cap/v1/manifest_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { decodeValid, refusalOf } from "@depute/wire";
import { compilePublished } from "@depute/wire/json-schema";

/** The text's schema of manifests, as it is published. */
export const AGENT_SCHEMA = readFileSync(new URL("./documents/agent.schema.json", import.meta.url), "utf8");

/** Checks a manifest by the text's schema and by Depute's choices beside it. */
export type ReadManifest = (document: JsonValue) => AgentManifest;

/**
 * Compiles the schema. What it leaves unchecked is refused by the contract: ids outside their pattern, and rules for agents
 * that are not allowed.
 *
 * @throws Error when the schema is none
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
