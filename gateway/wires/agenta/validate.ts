import { type CompiledSchema, compilePublished, type Violation } from "@depute/wire/json-schema";
import { AGENTA_MESSAGES, type AgentaMessage, readDocument, schemaFile } from "./documents.ts";

/** One fault of a document: its location as a JSON pointer, and a description. */
export interface AgentaFault {
  readonly path: string;
  readonly message: string;
}

export type AgentaValidation =
  | { readonly ok: true }
  | { readonly ok: false; readonly faults: readonly AgentaFault[] };

/** Checks a document against the published schema of its message type. Never throws. */
export type ValidateAgenta = (messageType: AgentaMessage, document: unknown) => AgentaValidation;

/**
 * Compiles the four published schemas in strict mode, with checks of formats.
 *
 * @throws Error when a schema is not valid in draft 2020-12
 */
export function compileAgenta(): ValidateAgenta {
  const compiled = new Map<AgentaMessage, CompiledSchema>();
  for (const message of AGENTA_MESSAGES) {
    compiled.set(message, compilePublished(JSON.parse(readDocument(schemaFile(message)).toString("utf8"))));
  }
  return (messageType, document) => {
    const violationsOf = compiled.get(messageType);
    if (violationsOf === undefined) throw new Error(`no schema of ${messageType}`);
    const violations = violationsOf(document);
    return violations.length === 0 ? { ok: true } : { ok: false, faults: violations.map(toFault) };
  };
}

function toFault({ path, message, member }: Violation): AgentaFault {
  return { path, message: member === undefined ? message : `${message}: ${JSON.stringify(member)}` };
}
