import type { JsonValue } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";

/** Maximum length of a number that is repeated exactly. */
const MAX_DIGITS = 40;

/** What ECMAScript's "JSON.parse source text access" adds to JSON, without the types of TypeScript's library. */
interface ExactJson {
  parse(
    text: string,
    revive: (this: unknown, key: string, value: unknown, at: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
}

/**
 * Returns the ids of calls that a number of JavaScript does not hold exactly, such as times in nanoseconds, by the
 * calls that have them. JSON.stringify writes such an id as the caller wrote it: the response must have the same id.
 * (JSON-RPC 2.0 section 5)
 *
 * @param body the text of one call or a batch, which is JSON
 * @param parsed the same as a value
 */
export function exactIds(body: Uint8Array, parsed: JsonValue): ReadonlyMap<JsonValue, number> {
  const calls = Array.isArray(parsed) ? parsed : [parsed];
  const exact = new Map<JsonValue, number>();
  if (!calls.some(isRounded)) return exact;
  const { parse, rawJSON } = JSON as unknown as ExactJson;
  const sources = new Map<unknown, string>();
  const again = parse(Buffer.from(body).toString(), function (key, value, { source = "" }) {
    if (key === "id" && typeof value === "number") sources.set(this, source);
    return value;
  });
  const twins = Array.isArray(again) ? again : [again];
  for (const [index, call] of calls.entries()) {
    const source = sources.get(twins[index]) ?? "";
    if (isRounded(call) && source !== "" && source.length <= MAX_DIGITS)
      exact.set(call, rawJSON(source) as number);
  }
  return exact;
}

/** Whether the id of a call is a number beyond those that JavaScript holds exactly. */
function isRounded(call: JsonValue): boolean {
  return isObject(call) && typeof call.id === "number" && Math.abs(call.id) > Number.MAX_SAFE_INTEGER;
}
