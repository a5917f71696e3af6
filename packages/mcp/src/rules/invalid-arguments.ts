import type { JsonObject } from "@bufbuild/protobuf";
import { INTERNAL_ERROR, INVALID_PARAMS, Refusal } from "./refusal.ts";

/** One location where arguments violate the tool's input schema. */
export interface SchemaViolation {
  /** JSON pointer into the arguments; empty for the arguments themselves. */
  readonly path: string;
  readonly message: string;
}

/** The first revision in which a tool's result reports invalid arguments, so that a model can correct them. */
const REPORTED_IN_RESULTS = "2025-11-25";

/** The key of `_meta` under which a result contains the refusal in a form for programs. */
const REFUSAL_KEY = "depute.dev/refusal";

/**
 * Returns the result of a call whose arguments violate the tool's schema.
 *
 * @param revision the client's MCP revision; undefined if it is unknown
 * @throws Refusal -32602 if the revision is unknown, or is one that reports invalid arguments as an error
 */
export function invalidArguments(
  violations: readonly SchemaViolation[],
  revision: string | undefined,
): Record<string, unknown> {
  const listed = violations.map(({ path, message }) => ({ path: `/arguments${path}`, message }));
  const detail = listed.map(({ path, message }) => `${path}: ${message}`).join("; ");
  const data: JsonObject = { reason: "INVALID_REQUEST", detail, violations: listed };
  if (revision === undefined || revision < REPORTED_IN_RESULTS)
    throw new Refusal(INVALID_PARAMS, "Invalid params", data);
  const text = `The arguments do not fit the tool's input schema. ${detail}`;
  return { content: [{ type: "text", text }], isError: true, _meta: { [REFUSAL_KEY]: data } };
}

/** The error for a tool whose input schema cannot be checked. `reason` is from Depute's vocabulary of reasons. */
export function uncheckable(reason: string, cause: string): Refusal {
  const detail = `the tool's input schema cannot be checked: ${cause}; "checkArguments": false in the tool's rule forwards its calls unchecked`;
  return new Refusal(INTERNAL_ERROR, "the arguments cannot be checked", { reason, detail });
}
