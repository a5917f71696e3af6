import { DeputeError, ErrorReason, reasonName } from "@depute/core";
import { valueFitsQuickly } from "@depute/wire/json-schema";
import { type SchemaViolation, uncheckable } from "./rules/invalid-arguments.ts";
import type { SchemaCheck } from "./schema-check.ts";
import type { ToolInput } from "./tool-inputs.ts";

/** The reasons with which the verifier refuses to check a server's schema. */
const UNCHECKABLE: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.SCHEMA_INVALID,
  ErrorReason.UNSUPPORTED_PATTERN,
  ErrorReason.CHECK_TIMEOUT,
  ErrorReason.LIMIT_EXCEEDED,
]);

/**
 * Returns the places at which a call's arguments violate the tool's input schema. Most tools have a plain schema, and
 * most arguments fit it. This function detects that case itself, in a limited number of steps. In all other cases it
 * asks `schemaCheck`.
 *
 * @param args the arguments of the call; undefined counts as an empty object
 * @throws Refusal if the schema cannot be checked; DeputeError if the verifier is unavailable
 */
export async function argumentViolations(
  schemaCheck: SchemaCheck,
  input: ToolInput | undefined,
  args: unknown = {},
  signal?: AbortSignal,
): Promise<readonly SchemaViolation[]> {
  if (input?.schema === undefined) throw uncheckable("LIMIT_EXCEEDED", "the server lists too many schemas");
  const { json, quick } = input.schema;
  if (quick !== undefined && valueFitsQuickly(quick, args)) return [];
  try {
    return await schemaCheck.violations(json, args, signal);
  } catch (thrown) {
    if (thrown instanceof DeputeError && UNCHECKABLE.has(thrown.reason))
      throw uncheckable(reasonName(thrown.reason), thrown.message);
    throw thrown;
  }
}
