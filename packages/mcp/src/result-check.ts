import type { StandardSchemaV1 } from "@modelcontextprotocol/client";

const KNOWN = /^(tools|resources|prompts|completion|logging)\/|^ping$/;

/**
 * Whether the SDK checks the results of a method. The configuration can allow methods that the SDK does not know. Their
 * results are not checked.
 */
export function isKnownMethod(method: string): boolean {
  return KNOWN.test(method);
}

/** Accepts any object as a result. */
export const ANY_RESULT: StandardSchemaV1<unknown, Record<string, unknown>> = {
  "~standard": {
    version: 1,
    vendor: "depute",
    validate: (value) =>
      typeof value === "object" && value !== null
        ? { value: value as Record<string, unknown> }
        : { issues: [{ message: "must be an object" }] },
  },
};
