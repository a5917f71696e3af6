import type { DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { type Place, WireContractError } from "./codec.ts";
import { Fault, type WireError } from "./error.ts";
import { messageCodec } from "./message.ts";

/**
 * The deepest nesting of objects and arrays that decode accepts; a scalar has depth 0. The binary form of the same
 * message, which nests up to twice as deep, then stays within the 100 levels that protobuf parsers accept.
 */
export const MAX_DEPTH = 40;

export interface DecodeLimits {
  /** The deepest nesting of objects and arrays; MAX_DEPTH unless told otherwise. */
  maxDepth?: number;
}

export type Decoded<T> = { ok: true; message: T } | { ok: false; error: WireError };

/**
 * The message of a JSON document, by the message's wire options.
 *
 * It checks the document's shape: kinds, names, words, numbers that their fields hold exactly. The limits that the
 * contract states as rules are not checked, see decodeValid. It throws nothing, whatever the value; only a contract
 * whose options contradict each other throws WireContractError, at its first use. Free JSON (a Struct) in the message
 * is the document's own object, not a copy.
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
    // Only a value that no JSON parser returns (a proxy, an accessor) gets here.
    return { ok: false, error: { path: "", reason: "wrong_type", message: "the value is not JSON" } };
  }
}

/**
 * The JSON document of a message, by the message's wire options.
 *
 * Throws WireEncodeError when the message has no such form: a number that is not finite, an enum value without a word,
 * bytes that should hold JSON and do not.
 */
export function encode<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): JsonValue {
  return messageCodec(schema).encode(message, top(MAX_DEPTH));
}

function top(depth: number): Place {
  return { object: undefined, outer: undefined, depth };
}
