import { type CompiledSchema, compilePublished, type Violation } from "@depute/wire/json-schema";
import { type AgentaMessage, readDocument, schemaFile } from "./documents.ts";

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
 * Returns a function that checks documents against the four published schemas, in strict mode and including formats.
 * Each schema is compiled at its first use, so that the compilations (60 ms each) do not delay the start.
 */
export function compileAgenta(): ValidateAgenta {
  const compiled = new Map<AgentaMessage, CompiledSchema>();
  const compile = (message: AgentaMessage): CompiledSchema => {
    const schema = compilePublished(JSON.parse(readDocument(schemaFile(message)).toString("utf8")));
    compiled.set(message, schema);
    return schema;
  };
  return (messageType, document) => {
    const violations = (compiled.get(messageType) ?? compile(messageType))(document);
    return violations.length === 0 ? { ok: true } : { ok: false, faults: violations.map(toFault) };
  };
}

function toFault({ path, message, member }: Violation): AgentaFault {
  return { path, message: member === undefined ? message : `${message}: ${JSON.stringify(member)}` };
}
