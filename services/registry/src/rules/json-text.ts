import type { JsonValue } from "@bufbuild/protobuf";
import { CanonicalError, canonicalJson, jsonFaultText, scanJson } from "@depute/core";

/** The JSON value that bytes contain, or the fault of the bytes. */
export type JsonText =
  | { readonly value: JsonValue; readonly problem?: undefined }
  | { readonly problem: string };

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Parses JSON text from a caller's bytes. Refuses malformed JSON, and some valid JSON. Numbers out of range, lone
 * surrogates and nesting over 64 have no canonical form, so no hash. Duplicate members are ambiguous. Members named
 * `__proto__` disappear when objects are copied.
 */
export function readJsonText(bytes: Uint8Array): JsonText {
  let hasProto = false;
  let value: JsonValue;
  try {
    const text = utf8.decode(bytes);
    const fault = scanJson(text);
    if (fault !== undefined) return { problem: `is refused: ${jsonFaultText(fault)}` };
    value = JSON.parse(text, (key, member) => {
      hasProto ||= key === "__proto__";
      return member;
    }) as JsonValue;
  } catch (error) {
    return { problem: error instanceof TypeError ? "is not UTF-8" : "is not JSON" };
  }
  if (hasProto) return { problem: "has a member named __proto__" };
  try {
    canonicalJson(value);
  } catch (error) {
    if (error instanceof CanonicalError) return { problem: `has no canonical form: ${error.message}` };
    throw error;
  }
  return { value };
}

/** Returns the bytes that the store holds for a parsed value. */
export function writeJsonText(value: JsonValue): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}
