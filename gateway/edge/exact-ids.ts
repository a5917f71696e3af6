import type { JsonValue } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";

/** Maximum length in characters of an id that is repeated exactly. */
const MAX_DIGITS = 40;

/** Matches each member `id` with a number, at any depth. The body is JSON, so the match inside a text is impossible. */
const ID = /"id"\s*:\s*(-?[0-9][0-9.eE+-]*)/g;

/** A function of ECMAScript that TypeScript's library does not declare. Its result keeps a number's digits. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/**
 * Returns the exact ids of calls whose ids JavaScript rounds, such as times in nanoseconds. A response must have the id
 * of its call (JSON-RPC 2.0 section 5), and JSON.stringify writes these ids with all their digits. An id stays rounded
 * if other members `id` of the body have the same rounded value, because the function does not know their places.
 *
 * @param body the bytes of the request, which are valid JSON
 * @param parsed the parsed body: one call, or a batch of calls
 * @returns the ids by call
 */
export function exactIds(body: Uint8Array, parsed: JsonValue): ReadonlyMap<JsonValue, number> {
  const exact = new Map<JsonValue, number>();
  const callsById = Map.groupBy(
    (Array.isArray(parsed) ? parsed : [parsed]).filter(hasRoundedId),
    ({ id }) => id,
  );
  if (callsById.size === 0) return exact;
  const textsById = Map.groupBy(
    Array.from(Buffer.from(body).toString().matchAll(ID), ([, digits = ""]) => digits),
    Number,
  );
  for (const [id, calls] of callsById) {
    const texts = textsById.get(id) ?? [];
    if (texts.length !== calls.length) continue;
    for (const [index, call] of calls.entries()) {
      const digits = texts[index] ?? "";
      if (digits.length <= MAX_DIGITS) exact.set(call, rawJSON(digits) as number);
    }
  }
  return exact;
}

/** Whether the id of a call is a number beyond those that JavaScript holds exactly. */
function hasRoundedId(call: JsonValue): call is { readonly id: number } & Extract<JsonValue, object> {
  return isObject(call) && typeof call.id === "number" && Math.abs(call.id) > Number.MAX_SAFE_INTEGER;
}
