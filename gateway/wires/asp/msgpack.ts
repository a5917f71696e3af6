import type { JsonValue } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";
import { checkJson, MAX_DEPTH, type Parsed } from "@depute/wire";
import { decode, type ExtensionCodecType, encode } from "@msgpack/msgpack";
import { faultIn } from "./msgpack-scan.ts";

/** The type of ASP's documents in MessagePack. (ASP concepts "Messages") */
export const ASP_MSGPACK = "application/asp+msgpack";

/** A document has no types beside JSON's: an extension would be read by some and not by others. */
const NO_EXTENSIONS: ExtensionCodecType<undefined> = {
  tryToEncode: () => null,
  decode: () => {
    throw new Error("extension types are not taken");
  },
};

/**
 * A document in MessagePack, as the JSON value that it stands for: what is hashed and signed is the canonical JSON of that
 * value, whichever way it came. Refused are binary data, extension types, names that are no strings or come twice, and what
 * JSON does not have. Throws nothing.
 */
export function parseMsgpack(bytes: Uint8Array): Parsed {
  // The library makes room for as many elements as a header claims, so the headers are added up first.
  const fault = faultIn(bytes, MAX_DEPTH);
  if (fault !== undefined) return refuse(fault);
  let names = 0;
  let value: unknown;
  try {
    value = decode(bytes, {
      extensionCodec: NO_EXTENSIONS,
      mapKeyConverter: (key) => {
        if (typeof key !== "string") throw new Error("names of members are strings");
        names += 1;
        return key;
      },
    });
  } catch (thrown) {
    return refuse((thrown as Error).message);
  }
  const checked = checkJson(value);
  if (checked.ok && namesIn(checked.value) !== names) return refuse("a member comes twice");
  return checked;
}

/** A document in MessagePack. */
export function toMsgpack(document: JsonValue): Uint8Array {
  return encode(document, { extensionCodec: NO_EXTENSIONS });
}

/** How many members all objects of a value have. */
function namesIn(value: JsonValue): number {
  if (Array.isArray(value)) return value.reduce((count: number, item) => count + namesIn(item), 0);
  if (!isObject(value)) return 0;
  const members = Object.values(value) as JsonValue[];
  return members.reduce((count: number, member) => count + namesIn(member), members.length);
}

function refuse(why: string): Parsed {
  const message = `the body is no MessagePack document of JSON's types: ${why}`.slice(0, MAX_MESSAGE);
  return { ok: false, error: { path: "", reason: "not_json", message } };
}

const MAX_MESSAGE = 200;
