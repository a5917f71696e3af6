import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Fault } from "./error.ts";
import { type JsonKind, kindOf, spell } from "./kind.ts";

/** Where decoding or encoding stands: the object at hand, those around it, and the levels of nesting still allowed. */
export interface Place {
  /** The object being read or written; undefined at the top and in a list or map. */
  readonly object: Readonly<Record<string, unknown>> | undefined;
  readonly outer: Place | undefined;
  /** How many levels of objects and arrays may still begin here. */
  readonly depth: number;
}

/** One level further in. */
export function inside(place: Place, object?: JsonObject): Place {
  return { object, outer: place, depth: place.depth - 1 };
}

/** How one value appears as JSON. Local values are those of protobuf-es. */
export interface Codec {
  /** The kinds of JSON value that it takes; no other reaches decode by way of a choice. */
  readonly kinds: readonly JsonKind[];
  /** The local value; throws Fault. */
  decode(json: unknown, place: Place): unknown;
  /** The JSON value; throws WireEncodeError. */
  encode(local: unknown, place: Place): JsonValue;
}

/** A message has no JSON form, e.g. a number that is not finite or an enum value without a word. */
export class WireEncodeError extends Error {
  override readonly name = "WireEncodeError";
}

/** A contract's wire options contradict each other; found when the contract is first used. */
export class WireContractError extends Error {
  override readonly name = "WireContractError";
}

export function wrongType(json: unknown, wanted: readonly JsonKind[]): Fault {
  return new Fault("wrong_type", `${wanted.map(spell).join(" or ")} is wanted, not ${spell(kindOf(json))}`);
}
