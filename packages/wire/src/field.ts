import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import type { ListValue, Value } from "@bufbuild/protobuf/wkt";
import {
  ALL_KINDS,
  type Codec,
  inside,
  type MessageCodecs,
  WireContractError,
  WireEncodeError,
  wrongType,
} from "./codec.ts";
import { Fault, quote, within } from "./error.ts";
import {
  checkFinite,
  checkFree,
  checkText,
  fromListValue,
  fromValue,
  setMember,
  toListValue,
  tooDeep,
  toValue,
} from "./free.ts";
import { enumWords, fieldOptions } from "./names.ts";

/** Returns the codec of a scalar field. `json` is the wire option `wire_field.json`. */
export function scalarCodec(type: ScalarType, json: boolean, name: string): Codec {
  switch (type) {
    case ScalarType.STRING:
      return stringCodec;
    case ScalarType.BOOL:
      return boolCodec;
    case ScalarType.DOUBLE:
      return numberCodec((value) => value);
    case ScalarType.FLOAT:
      return numberCodec(shortest);
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return integerCodec(-(2 ** 31), 2 ** 31 - 1, Number);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return integerCodec(0, 2 ** 32 - 1, Number);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return integerCodec(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, BigInt);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return integerCodec(0, Number.MAX_SAFE_INTEGER, BigInt);
    case ScalarType.BYTES:
      if (json) return jsonBytesCodec;
      throw new WireContractError(`${name}: bytes have a JSON form only with wire_field.json`);
  }
}

const stringCodec: Codec = {
  kinds: ["string"],
  decode(json) {
    if (typeof json !== "string") throw wrongType(json, this.kinds);
    checkText(json);
    return json;
  },
  encode: (local) => local as string,
};

const boolCodec: Codec = {
  kinds: ["boolean"],
  decode(json) {
    if (typeof json !== "boolean") throw wrongType(json, this.kinds);
    return json;
  },
  encode: (local) => local as boolean,
};

function numberCodec(written: (value: number) => number): Codec {
  return {
    kinds: ["number"],
    decode(json) {
      if (typeof json !== "number") throw wrongType(json, this.kinds);
      checkFinite(json);
      return json;
    },
    encode(local) {
      if (!Number.isFinite(local)) throw new WireEncodeError(`${local} has no JSON form`);
      return written(local as number);
    },
  };
}

/** Returns the shortest decimal that has the same single-precision value, so that 0.7 is not written as 0.699999988. */
function shortest(value: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const decimal = Number(value.toPrecision(digits));
    if (Math.fround(decimal) === Math.fround(value)) return decimal;
  }
  return value;
}

/**
 * Returns the codec of the integers from `min` to `max`. It accepts JSON numbers without a fraction (1.0 is 1). For
 * fields of 64 bits, callers pass at most 2^53-1, because JSON parsers may round larger integers.
 */
function integerCodec(min: number, max: number, toLocal: (value: number) => number | bigint): Codec {
  return {
    kinds: ["number"],
    decode(json) {
      if (typeof json !== "number") throw wrongType(json, this.kinds);
      if (!Number.isInteger(json)) throw new Fault("number_range", "an integer is required");
      if (json < min || json > max)
        throw new Fault("number_range", `an integer from ${min} to ${max} is required`);
      return toLocal(json);
    },
    encode(local) {
      const value = Number(local);
      if (!(value >= min && value <= max))
        throw new WireEncodeError(`the integer ${local} is beyond ${min} to ${max}`);
      return value;
    },
  };
}

const toUtf8 = new TextEncoder();
const fromUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The codec of a bytes field that contains any JSON value as text. */
const jsonBytesCodec: Codec = {
  kinds: ALL_KINDS,
  decode(json, place) {
    checkFree(json, place.depth);
    return toUtf8.encode(JSON.stringify(json));
  },
  encode(local) {
    try {
      return JSON.parse(fromUtf8.decode(local as Uint8Array)) as JsonValue;
    } catch (cause) {
      throw new WireEncodeError("the bytes are not JSON text", { cause });
    }
  },
};

/** Returns the codec of an enum: a JSON string with one of the enum's words, or null for google.protobuf.NullValue. */
export function enumCodec(type: DescEnum): Codec {
  if (type.typeName === "google.protobuf.NullValue") return nullCodec;
  const wordOf = enumWords(type);
  const numberOf = new Map([...wordOf].map(([number, word]) => [word, number]));
  if (numberOf.size !== wordOf.size) throw new WireContractError(`${type.typeName}: two values share a word`);
  return {
    kinds: ["string"],
    decode(json) {
      if (typeof json !== "string") throw wrongType(json, this.kinds);
      const number = numberOf.get(json);
      if (number === undefined)
        throw new Fault("unknown_word", `${quote(json)} is not a word of this member`);
      return number;
    },
    encode(local) {
      const word = wordOf.get(local as number);
      if (word === undefined) throw new WireEncodeError(`${type.typeName} has no word for ${local}`);
      return word;
    },
  };
}

const nullCodec: Codec = {
  kinds: ["null"],
  decode(json) {
    if (json !== null) throw wrongType(json, this.kinds);
    return 0;
  },
  encode: () => null,
};

/** Returns the codec of a field's value. For a list or a map, the value is the whole list or map. */
export function fieldCodec(field: DescField, messages: MessageCodecs): Codec {
  switch (field.fieldKind) {
    case "list":
      return listCodec(elementCodec(field, field.listKind, messages));
    case "map":
      if (field.mapKey !== ScalarType.STRING)
        throw new WireContractError(`${field}: a map needs string keys`);
      return mapCodec(elementCodec(field, field.mapKind, messages));
    default:
      return elementCodec(field, field.fieldKind, messages);
  }
}

function elementCodec(field: DescField, kind: "scalar" | "enum" | "message", messages: MessageCodecs): Codec {
  // Each branch compares `kind` with a literal, because TypeScript infers the type of the field only from such a
  // comparison.
  if (kind === "message")
    return wellKnownCodec(field.message as DescMessage) ?? messages(field.message as DescMessage);
  if (kind === "enum") return enumCodec(field.enum as NonNullable<DescField["enum"]>);
  return scalarCodec(field.scalar as ScalarType, fieldOptions(field).json, String(field));
}

function wellKnownCodec(type: DescMessage): Codec | undefined {
  switch (type.typeName) {
    case "google.protobuf.Struct":
      return structCodec;
    case "google.protobuf.Value":
      return valueCodec;
    case "google.protobuf.ListValue":
      return listValueCodec;
  }
  if (type.file.proto.package === "google.protobuf") {
    throw new WireContractError(`${type.typeName} has no form in the families' JSON`);
  }
  return undefined;
}

/** Converts a Struct field, which protobuf-es represents as a plain object. */
const structCodec: Codec = {
  kinds: ["object"],
  decode(json, place) {
    if (typeof json !== "object" || json === null || Array.isArray(json)) throw wrongType(json, this.kinds);
    checkFree(json, place.depth);
    return json;
  },
  encode: (local) => local as JsonObject,
};

const valueCodec: Codec = {
  kinds: ALL_KINDS,
  decode(json, place) {
    checkFree(json, place.depth);
    return toValue(json);
  },
  encode(local) {
    const json = fromValue(local as Value);
    if (json === undefined) throw new WireEncodeError("a google.protobuf.Value must contain a value");
    return json;
  },
};

const listValueCodec: Codec = {
  kinds: ["array"],
  decode(json, place) {
    if (!Array.isArray(json)) throw wrongType(json, this.kinds);
    checkFree(json, place.depth);
    return toListValue(json as JsonValue[]);
  },
  encode: (local) => fromListValue(local as ListValue),
};

function listCodec(element: Codec): Codec {
  return {
    kinds: ["array"],
    decode(json, place) {
      if (!Array.isArray(json)) throw wrongType(json, this.kinds);
      if (place.depth <= 0) throw tooDeep();
      const elementPlace = inside(place);
      const items: unknown[] = [];
      for (let i = 0; i < json.length; i++) {
        try {
          items.push(element.decode(json[i], elementPlace));
        } catch (thrown) {
          throw within(thrown, i);
        }
      }
      return items;
    },
    encode(local, place) {
      const elementPlace = inside(place);
      return (local as unknown[]).map((item) => element.encode(item, elementPlace));
    },
  };
}

function mapCodec(element: Codec): Codec {
  return {
    kinds: ["object"],
    decode(json, place) {
      if (typeof json !== "object" || json === null || Array.isArray(json)) throw wrongType(json, this.kinds);
      if (place.depth <= 0) throw tooDeep();
      const elementPlace = inside(place);
      const entries: Record<string, unknown> = {};
      for (const key of Object.keys(json)) {
        try {
          checkText(key);
          setMember(entries, key, element.decode((json as JsonObject)[key], elementPlace));
        } catch (thrown) {
          throw within(thrown, { sent: key });
        }
      }
      return entries;
    },
    encode(local, place) {
      const elementPlace = inside(place);
      const object: JsonObject = {};
      const entries = local as Record<string, unknown>;
      for (const key of Object.keys(entries))
        setMember(object, key, element.encode(entries[key], elementPlace));
      return object;
    },
  };
}
