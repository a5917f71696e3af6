import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Fault } from "./error.ts";

/** The six kinds of JSON value. */
export type JsonKind = "null" | "boolean" | "number" | "string" | "array" | "object";

export const ALL_KINDS: readonly JsonKind[] = ["null", "boolean", "number", "string", "array", "object"];

/** Returns the JSON kind of a value; undefined for values outside JSON (undefined, functions, bigints, symbols). */
export function kindOf(value: unknown): JsonKind | undefined {
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
      return typeof value as JsonKind;
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? "array" : "object";
    default:
      return undefined;
  }
}

/** Returns a kind with its article, for example "an array". */
export function withArticle(kind: JsonKind | undefined): string {
  if (kind === undefined) return "not JSON";
  if (kind === "null") return "null";
  return kind === "array" || kind === "object" ? `an ${kind}` : `a ${kind}`;
}

/**
 * The position of the decoder or encoder in a document: the current object, the surrounding objects, and the nesting
 * levels that are left.
 */
export interface Place {
  /** The JSON object that is read or written; undefined at the top level, and within a list or map. */
  readonly object: Readonly<Record<string, unknown>> | undefined;
  readonly outer: Place | undefined;
  /** Number of nesting levels of objects and arrays that are still allowed at this position. */
  readonly depth: number;
}

/**
 * Returns the place one nesting level below `place`. `object` is the object at the new place; absent within a list
 * or map.
 */
export function inside(place: Place, object?: JsonObject): Place {
  return { object, outer: place, depth: place.depth - 1 };
}

/** Converts one value between JSON and protobuf-es. "Local" means the value as protobuf-es represents it. */
export interface Codec {
  /** The kinds of JSON value that the codec accepts. `decode` throws Fault for a value of another kind. */
  readonly kinds: readonly JsonKind[];
  /** Converts a JSON value to the value in protobuf-es; throws Fault. */
  decode(json: unknown, place: Place): unknown;
  /** Converts a value in protobuf-es to the JSON value; throws WireEncodeError. */
  encode(local: unknown, place: Place): JsonValue;
}

/**
 * Returns the codec of a message type. Codecs of fields take this function as an argument, because messages may be
 * recursive.
 */
export type MessageCodecs = (desc: DescMessage) => Codec;

/** Thrown if a message has no JSON form. Examples are an infinite number, and an enum value without a word. */
export class WireEncodeError extends Error {
  override readonly name = "WireEncodeError";
}

/** Thrown at a contract's first use if the contract's wire options contradict each other. */
export class WireContractError extends Error {
  override readonly name = "WireContractError";
}

export function wrongType(json: unknown, expectedKinds: readonly JsonKind[]): Fault {
  return new Fault(
    "wrong_type",
    `${expectedKinds.map(withArticle).join(" or ")} is required, not ${withArticle(kindOf(json))}`,
  );
}
