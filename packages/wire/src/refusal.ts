import { DeputeError, ErrorReason } from "@depute/core";
import type { WireError } from "./error.ts";

const LIMITS = { too_large: "json_bytes", too_deep: "json_depth", too_many_values: "json_values" } as const;

/**
 * Converts the faults of a document to a refusal. The reason LIMIT_EXCEEDED is for size, depth or number of values
 * (`limit` is json_bytes, json_depth or json_values). MALFORMED_JSON is for a text that is not JSON or not UTF-8, or
 * has half of a surrogate pair. INVALID_REQUEST is for all other faults; each fault becomes a violation whose field is
 * the JSON pointer.
 *
 * @param errors the faults that parseJson, decode or decodeValid returned
 */
export function refusalOf(...errors: readonly [WireError, ...WireError[]]): DeputeError {
  const [first] = errors;
  switch (first.reason) {
    case "too_large":
    case "too_many_values":
    case "too_deep": {
      const limit = LIMITS[first.reason];
      return new DeputeError(ErrorReason.LIMIT_EXCEEDED, sentence(first), {
        metadata: { limit, max: String(first.max ?? "") },
      });
    }
    case "not_json":
    case "not_utf8":
    case "lone_surrogate":
      return new DeputeError(ErrorReason.MALFORMED_JSON, sentence(first), { metadata: { path: first.path } });
    default:
      return new DeputeError(ErrorReason.INVALID_REQUEST, errors.map(sentence).join("; "), {
        violations: errors.map((error) => ({
          field: error.path,
          description: error.message,
          reason: error.rule ?? error.reason,
        })),
      });
  }
}

function sentence({ path, message }: WireError): string {
  return path === "" ? message : `${path}: ${message}`;
}
