import type { JsonValue } from "@bufbuild/protobuf";
import { CanonicalError, canonicalJson, jsonFaultText, scanJson } from "@depute/core";

/** A JSON value read from the bytes of a message, or what is wrong with them. */
export type JsonText =
  | { readonly value: JsonValue; readonly problem?: undefined }
  | { readonly problem: string };

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads JSON text that a caller sent as bytes.
 *
 * Refused beside what is no JSON: values without a canonical form (numbers out of range, lone surrogates, nesting over
 * 64), since they could not be hashed, members that stand twice, and members named `__proto__`, which get lost where
 * objects are copied.
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

/** The text to keep for a value that was read. */
export function writeJsonText(value: JsonValue): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}
