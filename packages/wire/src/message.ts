import { create, type DescMessage, type JsonObject } from "@bufbuild/protobuf";
import { type Codec, inside, WireContractError, WireEncodeError, wrongType } from "./codec.ts";
import { fieldCodec } from "./field.ts";
import { kindOf } from "./kind.ts";
import { isInline } from "./names.ts";
import { decodeObject, encodeObject } from "./object.ts";
import { byKind, planOf } from "./plan.ts";

const codecs = new WeakMap<DescMessage, Codec>();

/** The codec of a message, made once. The plan behind it is made at first use, since messages may hold themselves. */
export function messageCodec(desc: DescMessage): Codec {
  let codec = codecs.get(desc);
  if (codec === undefined) {
    codec = isInline(desc) ? inlineCodec(desc) : objectCodec(desc);
    codecs.set(desc, codec);
  }
  return codec;
}

function objectCodec(desc: DescMessage): Codec {
  return {
    kinds: ["object"],
    decode: (json, place) => decodeObject(planOf(desc), json, place),
    encode(local, place) {
      const object: JsonObject = {};
      encodeObject(planOf(desc), local as Record<string, unknown>, object, inside(place, object));
      return object;
    },
  };
}

/** The JSON of an inline message is that of its only field, or of whichever member of its only oneof takes the kind. */
function inlineCodec(desc: DescMessage): Codec {
  const [field, ...others] = desc.fields;
  const [oneof] = desc.oneofs;
  if (
    field === undefined ||
    (others.length > 0 && desc.fields.some((each) => each.oneof !== oneof || !oneof))
  ) {
    throw new WireContractError(`${desc.typeName}: an inline message holds one field or one oneof`);
  }
  return oneof === undefined ? inlineField(desc) : inlineOneof(desc);
}

function inlineField(desc: DescMessage): Codec {
  const [field] = desc.fields as [DescMessage["fields"][number]];
  const codec = fieldCodec(field);
  return {
    kinds: codec.kinds,
    decode(json, place) {
      const message = create(desc) as unknown as Record<string, unknown>;
      message[field.localName] = codec.decode(json, place);
      return message;
    },
    encode(local, place) {
      const value = (local as Record<string, unknown>)[field.localName];
      if (value === undefined) throw new WireEncodeError(`${desc.typeName} holds no value`);
      return codec.encode(value, place);
    },
  };
}

function inlineOneof(desc: DescMessage): Codec {
  const [oneof] = desc.oneofs as [DescMessage["oneofs"][number]];
  const members = oneof.fields.map((field) => ({ local: field.localName, codec: fieldCodec(field) }));
  const choice = byKind(members, desc.typeName);
  const kinds = [...choice.keys()];
  return {
    kinds,
    decode(json, place) {
      const member = choice.get(kindOf(json) as never);
      if (member === undefined) throw wrongType(json, kinds);
      const message = create(desc) as unknown as Record<string, unknown>;
      message[oneof.localName] = { case: member.local, value: member.codec.decode(json, place) };
      return message;
    },
    encode(local, place) {
      const chosen = (local as Record<string, { case?: string; value?: unknown }>)[oneof.localName];
      const member = members.find((each) => each.local === chosen?.case);
      if (member === undefined) throw new WireEncodeError(`${desc.typeName} holds no value`);
      return member.codec.encode(chosen?.value, place);
    },
  };
}
