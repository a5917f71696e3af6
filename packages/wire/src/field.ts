import type { DescField, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { ListValue, Value } from "@bufbuild/protobuf/wkt";
import { type Codec, inside, WireContractError, WireEncodeError, wrongType } from "./codec.ts";
import { within } from "./error.ts";
import {
  checkFree,
  checkText,
  fromListValue,
  fromValue,
  setMember,
  toListValue,
  tooDeep,
  toValue,
} from "./free.ts";
import { ALL_KINDS } from "./kind.ts";
import { messageCodec } from "./message.ts";
import { fieldOptions } from "./names.ts";
import { enumCodec, scalarCodec } from "./scalar.ts";

/** The codec of a field's value: of the list or map as a whole where it is one. */
export function fieldCodec(field: DescField): Codec {
  switch (field.fieldKind) {
    case "list":
      return listCodec(elementCodec(field, field.listKind));
    case "map":
      if (field.mapKey !== ScalarType.STRING)
        throw new WireContractError(`${field}: a map needs string keys`);
      return mapCodec(elementCodec(field, field.mapKind));
    default:
      return elementCodec(field, field.fieldKind);
  }
}

function elementCodec(field: DescField, kind: "scalar" | "enum" | "message"): Codec {
  // The descriptor's type ties each kind to its member only where the kinds are spelled out one by one.
  if (kind === "message")
    return wellKnownCodec(field.message as DescMessage) ?? messageCodec(field.message as DescMessage);
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

/** protobuf-es holds a Struct field as the plain object itself. */
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
    if (json === undefined) throw new WireEncodeError("a google.protobuf.Value holds no value");
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
      const here = inside(place);
      const items: unknown[] = [];
      for (let i = 0; i < json.length; i++) {
        try {
          items.push(element.decode(json[i], here));
        } catch (thrown) {
          throw within(thrown, i);
        }
      }
      return items;
    },
    encode(local, place) {
      const here = inside(place);
      return (local as unknown[]).map((item) => element.encode(item, here));
    },
  };
}

function mapCodec(element: Codec): Codec {
  return {
    kinds: ["object"],
    decode(json, place) {
      if (typeof json !== "object" || json === null || Array.isArray(json)) throw wrongType(json, this.kinds);
      if (place.depth <= 0) throw tooDeep();
      const here = inside(place);
      const entries: Record<string, unknown> = {};
      for (const key of Object.keys(json)) {
        try {
          checkText(key);
          setMember(entries, key, element.decode((json as JsonObject)[key], here));
        } catch (thrown) {
          throw within(thrown, { sent: key });
        }
      }
      return entries;
    },
    encode(local, place) {
      const here = inside(place);
      const object: JsonObject = {};
      const entries = local as Record<string, unknown>;
      for (const key of Object.keys(entries)) setMember(object, key, element.encode(entries[key], here));
      return object;
    },
  };
}
