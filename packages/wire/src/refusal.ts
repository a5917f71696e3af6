import { DeputeError, ErrorReason } from "@depute/core";
import type { WireError } from "./error.ts";

/**
 * The refusal of a document: LIMIT_EXCEEDED for its size or depth (`limit` is json_bytes or json_depth),
 * MALFORMED_JSON when it is no JSON text, and otherwise INVALID_REQUEST with every fault as a violation whose field is
 * the JSON pointer. `errors` is what parseJson, decode or decodeValid reported.
 */
export function refusalOf(...errors: readonly [WireError, ...WireError[]]): DeputeError {
  const [first] = errors;
  switch (first.reason) {
    case "too_large":
    case "too_deep": {
      const limit = first.reason === "too_large" ? "json_bytes" : "json_depth";
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
