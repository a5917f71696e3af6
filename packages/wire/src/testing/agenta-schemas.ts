import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { Schema } from "./json-schema-arbitrary.ts";

/** The four messages of Agenta, by the names of their schemas. */
export const AGENTA_MESSAGES = [
  "offer",
  "execution_request",
  "execution_receipt",
  "verification_result",
] as const;

export type AgentaMessage = (typeof AGENTA_MESSAGES)[number];

const DOCUMENTS = new URL("../../../../gateway/wires/agenta/documents/", import.meta.url);

/** Reads the published schema of an Agenta message. */
export function agentaSchema(message: AgentaMessage): Schema {
  return JSON.parse(readFileSync(new URL(`${message}.schema.json`, DOCUMENTS), "utf8")) as Schema;
}

/** Returns Ajv's validator for a schema of draft 2020-12. The validator also checks formats. */
export function compile(schema: Schema): ValidateFunction {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: false });
  formats.default(ajv);
  return ajv.compile(schema);
}
