import { type DescEnum, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { type Codec, WireContractError, WireEncodeError, wrongType } from "./codec.ts";
import { Fault, quote } from "./error.ts";
import { checkFinite, checkFree, checkText } from "./free.ts";
import { ALL_KINDS } from "./kind.ts";
import { enumWords } from "./names.ts";

/** The codec of a scalar field; `json` is the option of that name. */
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

/** The shortest decimal that means the same single-precision number, so that 0.7 comes back as 0.7. */
function shortest(value: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const decimal = Number(value.toPrecision(digits));
    if (Math.fround(decimal) === Math.fround(value)) return decimal;
  }
  return value;
}

/** Integers are JSON numbers without a fraction (1.0 is 1) and exact in every JSON parser: within 2^53-1. */
function integerCodec(min: number, max: number, toLocal: (value: number) => number | bigint): Codec {
  return {
    kinds: ["number"],
    decode(json) {
      if (typeof json !== "number") throw wrongType(json, this.kinds);
      if (!Number.isInteger(json)) throw new Fault("number_range", "an integer is wanted");
      if (json < min || json > max)
        throw new Fault("number_range", `an integer from ${min} to ${max} is wanted`);
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

/** Any JSON value, held as its text. */
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
      throw new WireEncodeError("a bytes field that should hold JSON does not", { cause });
    }
  },
};

/** The codec of an enum: its words, or null for google.protobuf.NullValue. */
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
