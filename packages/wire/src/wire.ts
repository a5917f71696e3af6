import type { DescField, DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { type BrokenRule, brokenRules, jsonFaultText, scanJson } from "@depute/core";
import { type Place, WireContractError } from "./codec.ts";
import { Fault, pointer, type Step, type WireError } from "./error.ts";
import { checkFree } from "./free.ts";
import { messageCodec } from "./message.ts";
import { fieldOptions, isInline, isTagged, oneofOptions, wireName } from "./names.ts";
import { findSyntaxError } from "./syntax.ts";

/**
 * Maximum nesting of objects and arrays that decode accepts; a scalar has depth 0. In binary form the same message
 * nests up to twice as deep, within the 100 levels that protobuf parsers accept.
 */
export const MAX_DEPTH = 40;

export interface DecodeLimits {
  /** Maximum nesting of objects and arrays. Default: MAX_DEPTH. */
  maxDepth?: number;
}

export type Decoded<T> = { ok: true; message: T } | { ok: false; error: WireError };

/**
 * Decodes a JSON document by the message's wire options. The decoder checks the document's shape: kinds, names,
 * words, and numbers within the range of their fields. It does not check the contract's rules; see decodeValid.
 * Faults of the document are returned, not thrown. Only a contract with contradicting options throws
 * WireContractError, at its first use. Free JSON (a Struct) in the message is not copied: it is the document's
 * own object.
 */
export function decode<Desc extends DescMessage>(
  schema: Desc,
  json: unknown,
  limits: DecodeLimits = {},
): Decoded<MessageShape<Desc>> {
  const codec = messageCodec(schema);
  const maxDepth = limits.maxDepth ?? MAX_DEPTH;
  try {
    return { ok: true, message: codec.decode(json, top(maxDepth)) as MessageShape<Desc> };
  } catch (thrown) {
    if (thrown instanceof Fault) return { ok: false, error: thrown.toError(maxDepth) };
    if (thrown instanceof WireContractError) throw thrown;
    // Only values that no JSON parser returns (a proxy, an accessor) reach this line.
    return { ok: false, error: { path: "", reason: "wrong_type", message: "the value is not JSON" } };
  }
}

/**
 * Encodes a message as JSON by the message's wire options. Throws WireEncodeError if the message has no JSON form, for
 * example because of an infinite number, an enum value without a word, or a JSON field without JSON in its bytes.
 */
export function encode<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): JsonValue {
  return messageCodec(schema).encode(message, top(MAX_DEPTH));
}

function top(depth: number): Place {
  return { object: undefined, outer: undefined, depth };
}

/** Maximum number of faults that decodeValid reports. */
export const MAX_ERRORS = 20;

export type DecodedValid<T> =
  | { ok: true; message: T }
  | { ok: false; error: WireError; errors: readonly [WireError, ...WireError[]] };

/**
 * Decodes a document as decode does, and then checks the rules of the message's contract (protovalidate). `errors` has
 * at most MAX_ERRORS faults, and their paths use the document's names. `error` is the first fault. Throws only for an
 * invalid contract.
 */
export function decodeValid<Desc extends DescMessage>(
  schema: Desc,
  json: unknown,
  limits: DecodeLimits = {},
): DecodedValid<MessageShape<Desc>> {
  const decoded = decode(schema, json, limits);
  if (!decoded.ok) return { ok: false, error: decoded.error, errors: [decoded.error] };
  const [error, ...more] = brokenRules(schema, decoded.message).slice(0, MAX_ERRORS).map(toWireError);
  return error === undefined ? decoded : { ok: false, error, errors: [error, ...more] };
}

function toWireError({ field, rule, message }: BrokenRule): WireError {
  return {
    path: pointer(wirePath(field)),
    reason: rule === "required" ? "missing_member" : "broken_rule",
    message: message === "" ? `the value breaks the rule ${rule}` : message,
    rule,
  };
}

/**
 * Converts a path of protobuf fields to the steps of a path in the document. A field adds no step if it belongs to an
 * inline message, is merged by a tag, or collects unknown members.
 */
export function wirePath(path: Path): Step[] {
  const steps: Step[] = [];
  for (const element of path) {
    switch (element.kind) {
      case "field":
        if (hasStep(element)) steps.push(wireName(element));
        break;
      case "oneof":
        steps.push(...oneofSteps(element));
        break;
      case "list_sub":
        steps.push(element.index);
        break;
      case "map_sub":
        steps.push({ sent: String(element.key) });
        break;
      default:
        break;
    }
  }
  return steps;
}

function hasStep(field: DescField): boolean {
  return !isInline(field.parent) && !isTagged(field) && !fieldOptions(field).extraMembers;
}

/** Returns the steps to a oneof: the oneof's tag, or the name that its members share. */
function oneofSteps(oneof: Extract<Path[number], { kind: "oneof" }>): Step[] {
  const { tag, inherited } = oneofOptions(oneof);
  if (tag !== "") return inherited ? [] : [tag];
  const names = new Set(oneof.fields.map(wireName));
  return names.size === 1 && !isInline(oneof.parent) ? [...names] : [];
}

/** Default maximum size of a text for parseJson, in bytes (in characters, for a string). */
export const MAX_BYTES = 1024 * 1024;

export interface ParseLimits {
  /** Maximum size of the text, in bytes of UTF-8 (in characters, for a string). Default: MAX_BYTES. */
  maxBytes?: number;
  /** Maximum nesting of objects and arrays. Default: MAX_DEPTH. */
  maxDepth?: number;
  /** Maximum number of values and names of members. Default: MAX_JSON_VALUES of packages/core. */
  maxValues?: number;
}

export type Parsed = { ok: true; value: JsonValue } | { ok: false; error: WireError };

/**
 * Number of nesting levels beyond the limit that are still parsed. The check after the parser refuses such a text,
 * and reports the path of the value that exceeds the limit.
 */
const BEYOND_DEPTH = 64;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Parses a JSON text. Refuses each text that JSON.parse refuses. Also refuses bytes that are not UTF-8, a byte order
 * mark, and texts that are too large or too deep, or have too many values and names. Refuses numbers beyond the range
 * of a double (1e400), and strings with half of a surrogate pair. Refuses objects with two members of one name. Checks
 * depth, values and names before JSON.parse allocates memory. Never throws.
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

/**
 * Checks a parsed value as parseJson does: numbers, half surrogate pairs and depth. Use it for input that was not JSON
 * text.
 */
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
