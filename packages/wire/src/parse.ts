import type { JsonValue } from "@bufbuild/protobuf";
import { jsonFaultText, scanJson } from "@depute/core";
import { Fault, type WireError } from "./error.ts";
import { checkFree } from "./free.ts";
import { findSyntaxError } from "./syntax.ts";
import { MAX_DEPTH } from "./wire.ts";

/** The longest text that parseJson accepts unless told otherwise, in bytes (in characters, for a string). */
export const MAX_BYTES = 1024 * 1024;

export interface ParseLimits {
  /** The longest text, in bytes of UTF-8 (in characters, for a string); MAX_BYTES unless told otherwise. */
  maxBytes?: number;
  /** The deepest nesting of objects and arrays; MAX_DEPTH unless told otherwise. */
  maxDepth?: number;
  /** Values and names of members; MAX_JSON_VALUES of packages/core unless told otherwise. */
  maxValues?: number;
}

export type Parsed = { ok: true; value: JsonValue } | { ok: false; error: WireError };

/** A text that is nested a little too deep is parsed, because the check of its values tells where. */
const BEYOND_DEPTH = 64;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Parses a JSON text.
 *
 * Refused beyond what JSON.parse refuses: bytes that are not UTF-8, a byte order mark, texts too large or too deep,
 * numbers beyond the range of a double (1e400), strings with half of a surrogate pair, and objects with two members of
 * one name. Depth, values and names are looked at before JSON.parse allocates anything. Throws nothing.
 */
export function parseJson(input: string | Uint8Array, limits: ParseLimits = {}): Parsed {
  const maxBytes = limits.maxBytes ?? MAX_BYTES;
  if (input.length > maxBytes) {
    return refuse("too_large", `the text is longer than ${maxBytes} bytes`, { max: maxBytes });
  }
  let text: string;
  try {
    text = typeof input === "string" ? input : utf8.decode(input);
  } catch {
    return refuse("not_utf8", "the bytes are not UTF-8");
  }
  if (text.startsWith("\uFEFF")) return refuse("not_utf8", "the text begins with a byte order mark");
  const maxDepth = limits.maxDepth ?? MAX_DEPTH;
  const fault = scanJson(text, { maxDepth: maxDepth + BEYOND_DEPTH, maxValues: limits.maxValues });
  if (fault?.kind === "too_deep") return refuse(fault.kind, jsonFaultText(fault), { max: maxDepth });
  if (fault?.kind === "too_many_values") return refuse(fault.kind, jsonFaultText(fault), { max: fault.max });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const position = findSyntaxError(text);
    return refuse("not_json", `the text is not JSON at character ${position}`, { position });
  }
  if (fault !== undefined) return refuse(fault.kind, jsonFaultText(fault));
  return checkJson(value, limits.maxDepth);
}

/** The same for a value that was read from another notation of JSON. */
export function checkJson(value: unknown, maxDepth: number = MAX_DEPTH): Parsed {
  try {
    checkFree(value, maxDepth);
  } catch (thrown) {
    if (thrown instanceof Fault) return { ok: false, error: thrown.toError(maxDepth) };
    throw thrown;
  }
  return { ok: true, value };
}

function refuse(reason: WireError["reason"], message: string, more: Partial<WireError> = {}): Parsed {
  return { ok: false, error: { path: "", reason, message, ...more } };
}
