import { create, type DescMessage, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import {
  type Codec,
  inside,
  kindOf,
  type Place,
  WireContractError,
  WireEncodeError,
  wrongType,
} from "./codec.ts";
import { Fault, quote, within } from "./error.ts";
import { fieldCodec } from "./field.ts";
import { checkFree, checkText, setMember, tooDeep } from "./free.ts";
import { isInline } from "./names.ts";
import { byKind, type Plan, planOf, type Slot, type Tag, type TagMember } from "./plan.ts";

type Json = Readonly<Record<string, unknown>>;
type Local = Record<string, unknown>;
type OneofValue = { case?: string | undefined; value?: unknown };

/**
 * One message that a JSON object decodes to: the object's own message, or the oneof member that a tag selects. The
 * fields of such a member are in the same JSON object.
 */
interface Layer {
  readonly plan: Plan;
  readonly message: Local;
}

/** Decodes a JSON object to a message; throws Fault. */
export function decodeObject(plan: Plan, json: unknown, place: Place): unknown {
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw wrongType(json, ["object"]);
  if (place.depth <= 0) throw tooDeep();
  const object = json as JsonObject;
  const layers: Layer[] = [];
  const objectPlace = inside(place, object);
  const read = readLayer(plan, object, objectPlace, layers);
  const names = Object.keys(object);
  // Compares the number of members that were read with the number of members in the object. This comparison is
  // cheaper than a search for each name, and most documents have no unknown members.
  if (read !== names.length) handleUnknownMembers(layers, object, names, objectPlace);
  return (layers[0] as Layer).message;
}

/**
 * Reads the members that a plan names, and the members of messages that tags merge. Returns the number of
 * members read.
 */
function readLayer(plan: Plan, json: Json, place: Place, layers: Layer[]): number {
  const message = create(plan.desc) as unknown as Local;
  layers.push({ plan, message });
  let read = 0;
  for (const slot of plan.slots) {
    if (!Object.hasOwn(json, slot.name)) {
      if (slot.required) throw missing(slot.name);
      continue;
    }
    read++;
    const value = json[slot.name];
    if (value === null && plan.nullIsAbsent && !slot.byKind.has("null")) {
      if (slot.required) throw missing(slot.name);
      continue;
    }
    try {
      readSlot(slot, message, value, place);
    } catch (thrown) {
      throw within(thrown, slot.name);
    }
  }
  for (const tag of plan.tags) read += readTag(tag, plan, message, json, place, layers);
  return read;
}

function missing(name: string): Fault {
  return new Fault("missing_member", "the member is required").within(name);
}

function readSlot(slot: Slot, message: Local, value: unknown, place: Place): void {
  const kind = kindOf(value);
  const member = kind === undefined ? undefined : slot.byKind.get(kind);
  if (member === undefined) throw wrongType(value, [...slot.byKind.keys()]);
  const local = member.codec.decode(value, place);
  if (slot.oneof === undefined) {
    message[member.local] = local;
    return;
  }
  if ((message[slot.oneof] as OneofValue).case !== undefined) {
    throw new Fault(
      "conflict",
      "the member cannot be combined with another present member; send only one of them",
    );
  }
  message[slot.oneof] = { case: member.local, value: local };
}

function readTag(tag: Tag, plan: Plan, message: Local, json: Json, place: Place, layers: Layer[]): number {
  const own = !tag.inherited && Object.hasOwn(json, tag.name);
  const word = tag.inherited ? findOutward(tag.name, place) : own ? json[tag.name] : undefined;
  if (own && !(word === null && plan.nullIsAbsent)) checkWord(tag, word);
  const member = tag.byWord.get(word as string);
  let read = own ? 1 : 0;
  if (member !== undefined) {
    const at = layers.length;
    read += readLayer(member.plan(), json, place, layers);
    message[tag.oneof] = { case: member.local, value: (layers[at] as Layer).message };
  }
  return read;
}

function checkWord(tag: Tag, word: unknown): void {
  if (typeof word !== "string") throw wrongType(word, ["string"]).within(tag.name);
  if (!tag.byWord.has(word)) {
    throw new Fault("unknown_word", `${quote(word)} is not a word of this member`).within(tag.name);
  }
}

/**
 * Returns the value of a member in the current object. If the current object lacks the member, returns the
 * value of the nearest surrounding object that has the member.
 */
function findOutward(name: string, start: Place): unknown {
  for (let place: Place | undefined = start; place !== undefined; place = place.outer) {
    if (place.object !== undefined && Object.hasOwn(place.object, name)) return place.object[name];
  }
  return undefined;
}

/**
 * Handles members that no layer defines. If the contract allows unknown members, this function collects or ignores
 * them. Otherwise it refuses the first of them.
 */
function handleUnknownMembers(
  layers: readonly Layer[],
  json: Json,
  names: readonly string[],
  place: Place,
): void {
  const keeper = layers.find((layer) => layer.plan.extra !== undefined);
  if (keeper === undefined && layers[0]?.plan.ignoreUnknown === true) return;
  const extra: JsonObject = {};
  for (const name of names) {
    if (layers.some((layer) => layer.plan.names.has(name))) continue;
    try {
      if (keeper === undefined)
        throw new Fault("unknown_member", "the message has no such member; remove it");
      checkText(name);
      const value = json[name];
      checkFree(value, place.depth);
      setMember(extra, name, value);
    } catch (thrown) {
      throw within(thrown, { sent: name });
    }
  }
  if (keeper?.plan.extra !== undefined) keeper.message[keeper.plan.extra] = extra;
}

/** Writes a message's members into a JSON object; throws WireEncodeError. */
export function encodeObject(plan: Plan, message: Readonly<Local>, object: JsonObject, place: Place): void {
  for (const slot of plan.slots) writeSlot(slot, message, object, place);
  for (const tag of plan.tags) writeTag(tag, message, object, place);
  if (plan.extra !== undefined) writeExtra(plan, message, object);
}

function writeSlot(slot: Slot, message: Readonly<Local>, object: JsonObject, place: Place): void {
  if (slot.oneof !== undefined) {
    const chosen = message[slot.oneof] as OneofValue;
    const member = slot.members.find((each) => each.local === chosen.case);
    if (member !== undefined) object[slot.name] = member.codec.encode(chosen.value, place);
    return;
  }
  const [member] = slot.members as [Slot["members"][number]];
  const local = message[member.local];
  if (!slot.isAbsent(local)) object[slot.name] = member.codec.encode(local, place);
}

function writeTag(tag: Tag, message: Readonly<Local>, object: JsonObject, place: Place): void {
  const chosen = message[tag.oneof] as OneofValue;
  if (chosen.case === undefined) return;
  const member = tag.byLocal.get(chosen.case) as TagMember;
  if (!tag.inherited) object[tag.name] = member.word;
  else {
    const word = findOutward(tag.name, place);
    if (word !== undefined && word !== member.word) {
      throw new WireEncodeError(`the body is ${member.word} where the enclosing ${tag.name} is ${word}`);
    }
  }
  encodeObject(member.plan(), chosen.value as Local, object, place);
}

function writeExtra(plan: Plan, message: Readonly<Local>, object: JsonObject): void {
  const extra = (message[plan.extra as string] ?? {}) as JsonObject;
  for (const name of Object.keys(extra)) {
    if (Object.hasOwn(object, name) || plan.names.has(name)) {
      throw new WireEncodeError(`an extra member has the name of a member of ${plan.desc.typeName}`);
    }
    setMember(object, name, extra[name] as JsonValue);
  }
}

const codecs = new WeakMap<DescMessage, Codec>();

/**
 * Returns the codec of a message. Creates the codec at the first call for a message type. The codec creates its plan
 * at its first use, because messages may be recursive.
 */
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
    decode: (json, place) => decodeObject(planOf(desc, messageCodec), json, place),
    encode(local, place) {
      const object: JsonObject = {};
      encodeObject(
        planOf(desc, messageCodec),
        local as Record<string, unknown>,
        object,
        inside(place, object),
      );
      return object;
    },
  };
}

/**
 * Returns the codec of an inline message. Its JSON form is the form of its only field, or of the oneof member that
 * accepts the value's kind.
 */
function inlineCodec(desc: DescMessage): Codec {
  const [field, ...others] = desc.fields;
  const [oneof] = desc.oneofs;
  if (
    field === undefined ||
    (others.length > 0 && desc.fields.some((each) => each.oneof !== oneof || !oneof))
  ) {
    throw new WireContractError(`${desc.typeName}: an inline message must have one field or one oneof`);
  }
  return oneof === undefined ? inlineField(desc) : inlineOneof(desc);
}

function inlineField(desc: DescMessage): Codec {
  const [field] = desc.fields as [DescMessage["fields"][number]];
  const codec = fieldCodec(field, messageCodec);
  return {
    kinds: codec.kinds,
    decode(json, place) {
      const message = create(desc) as unknown as Record<string, unknown>;
      message[field.localName] = codec.decode(json, place);
      return message;
    },
    encode(local, place) {
      const value = (local as Record<string, unknown>)[field.localName];
      if (value === undefined) throw new WireEncodeError(`${desc.typeName} contains no value`);
      return codec.encode(value, place);
    },
  };
}

function inlineOneof(desc: DescMessage): Codec {
  const [oneof] = desc.oneofs as [DescMessage["oneofs"][number]];
  const members = oneof.fields.map((field) => ({
    local: field.localName,
    codec: fieldCodec(field, messageCodec),
  }));
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
      if (member === undefined) throw new WireEncodeError(`${desc.typeName} contains no value`);
      return member.codec.encode(chosen?.value, place);
    },
  };
}
