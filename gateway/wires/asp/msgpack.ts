import type { JsonValue } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";
import { checkJson, MAX_DEPTH, type Parsed } from "@depute/wire";
import { decode, type ExtensionCodecType, encode } from "@msgpack/msgpack";
import { faultIn } from "./msgpack-scan.ts";

/** The media type of ASP's documents as MessagePack. (ASP concepts "Messages") */
export const ASP_MSGPACK = "application/asp+msgpack";

/**
 * Refuses MessagePack's extension types. A document may contain only JSON's types, because some readers would not
 * understand an extension.
 */
const NO_EXTENSIONS: ExtensionCodecType<undefined> = {
  tryToEncode: () => null,
  decode: () => {
    throw new Error("extension types are not allowed");
  },
};

/**
 * Reads a MessagePack document as a JSON value. In both formats, the hash and the signature of a message cover the
 * canonical JSON of this value. The function refuses binary data, extension types, repeated names, names that are not
 * strings, and values without a JSON form. Never throws.
 */
export function parseMsgpack(bytes: Uint8Array): Parsed {
  // Checks all heads first, because the library allocates as many elements as a head announces.
  const fault = faultIn(bytes, MAX_DEPTH);
  if (fault !== undefined) return refuse(fault);
  let names = 0;
  let value: unknown;
  try {
    value = decode(bytes, {
      extensionCodec: NO_EXTENSIONS,
      mapKeyConverter: (key) => {
        if (typeof key !== "string") throw new Error("names of members must be strings");
        names += 1;
        return key;
      },
    });
  } catch (thrown) {
    return refuse((thrown as Error).message);
  }
  const checked = checkJson(value);
  if (checked.ok && namesIn(checked.value) !== names) return refuse("a member occurs twice");
  return checked;
}

/** Writes a JSON document as MessagePack. */
export function toMsgpack(document: JsonValue): Uint8Array {
  return encode(document, { extensionCodec: NO_EXTENSIONS });
}

/** Counts the members in all objects of a value. */
function namesIn(value: JsonValue): number {
  if (Array.isArray(value)) return value.reduce((count: number, item) => count + namesIn(item), 0);
  if (!isObject(value)) return 0;
  const members = Object.values(value) as JsonValue[];
  return members.reduce((count: number, member) => count + namesIn(member), members.length);
}

function refuse(why: string): Parsed {
  const message = `the body is not a MessagePack document of JSON's types: ${why}`.slice(0, MAX_MESSAGE);
  return { ok: false, error: { path: "", reason: "not_json", message } };
}

const MAX_MESSAGE = 200;
