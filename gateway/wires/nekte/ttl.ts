import type { JsonValue } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";

/**
 * Parameters whose envelope has a whole number of seconds to live. Published clients send fractions, which the published proto's
 * field has no room for: it is rounded up, and `ttl_ms` is exact.
 *
 * @param member the parameter that is the envelope
 */
export function wholeSeconds(params: unknown, member: "context" | "envelope"): unknown {
  if (!isObject(params)) return params;
  const envelope = params[member];
  if (!isObject(envelope)) return params;
  // A document has no such member of its own.
  const { ttl_ms: _, ttl_s: seconds, ...rest } = envelope;
  if (typeof seconds !== "number" || Number.isInteger(seconds) || seconds <= 0) {
    return { ...params, [member]: { ...rest, ...(seconds === undefined ? {} : { ttl_s: seconds }) } };
  }
  const exact = { ttl_s: Math.ceil(seconds), ttl_ms: Math.max(1, Math.round(seconds * 1000)) };
  return { ...params, [member]: { ...rest, ...exact } };
}

/** An envelope as a document, with the fraction that its time to live was given with. */
export function withFraction(envelope: JsonValue): JsonValue {
  if (!isObject(envelope) || envelope.ttl_ms === undefined) return envelope;
  const { ttl_ms: ms, ...rest } = envelope as Record<string, JsonValue>;
  return { ...rest, ttl_s: Number(ms) / 1000 };
}
