import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { AGENTA_MESSAGES, type AgentaMessage, readDocument, schemaFile } from "./documents.ts";

/** The most faults that are told of one document. */
const MAX_FAULTS = 20;

/** One fault of a document: where, as a JSON pointer, and what. */
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
 * Compiles the four published schemas, strictly and with their formats asserted.
 *
 * @throws Error when a schema is not what draft 2020-12 allows
 */
export function compileAgenta(): ValidateAgenta {
  // Their authors leave `type` out beside `properties` in places, which is allowed; everything else is strict.
  const ajv = new Ajv2020({ strict: true, strictTypes: false, ownProperties: true });
  formats.default(ajv);
  const compiled = new Map<AgentaMessage, ValidateFunction>();
  for (const message of AGENTA_MESSAGES) {
    compiled.set(message, ajv.compile(JSON.parse(readDocument(schemaFile(message)).toString("utf8"))));
  }
  return (messageType, document) => {
    const validate = compiled.get(messageType);
    if (validate === undefined) throw new Error(`no schema of ${messageType}`);
    if (validate(document)) return { ok: true };
    return { ok: false, faults: (validate.errors ?? []).slice(0, MAX_FAULTS).map(toFault) };
  };
}

function toFault({ instancePath, message, params }: ErrorObject): AgentaFault {
  const member: unknown = params.additionalProperty;
  const more = typeof member === "string" ? `: ${JSON.stringify(member.slice(0, 64))}` : "";
  return { path: instancePath, message: `${message ?? "is not allowed"}${more}` };
}
