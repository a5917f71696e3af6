import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { inside, type Place, WireEncodeError, wrongType } from "./codec.ts";
import { Fault, quote, within } from "./error.ts";
import { checkFree, checkText, setMember, tooDeep } from "./free.ts";
import { kindOf } from "./kind.ts";
import type { Plan, Slot, Tag, TagMember } from "./plan.ts";

type Json = Readonly<Record<string, unknown>>;
type Local = Record<string, unknown>;
type OneofValue = { case?: string | undefined; value?: unknown };

/** A message whose members stand in one JSON object: the object's own, and those merged into it by a tag. */
interface Layer {
  readonly plan: Plan;
  readonly message: Local;
}

/** The message of a JSON object; throws Fault. */
export function decodeObject(plan: Plan, json: unknown, place: Place): unknown {
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw wrongType(json, ["object"]);
  if (place.depth <= 0) throw tooDeep();
  const object = json as JsonObject;
  const layers: Layer[] = [];
  const here = inside(place, object);
  const read = readLayer(plan, object, here, layers);
  const names = Object.keys(object);
  // Counting is cheaper than looking each name up, and the usual document has no strangers.
  if (read !== names.length) placeStrangers(layers, object, names, here);
  return (layers[0] as Layer).message;
}

/** Reads the members that a plan names, and those merged by its tags; the number of members read. */
function readLayer(plan: Plan, json: Json, here: Place, layers: Layer[]): number {
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
      readSlot(slot, message, value, here);
    } catch (thrown) {
      throw within(thrown, slot.name);
    }
  }
  for (const tag of plan.tags) read += readTag(tag, plan, message, json, here, layers);
  return read;
}

function missing(name: string): Fault {
  return new Fault("missing_member", "the member is needed").within(name);
}

function readSlot(slot: Slot, message: Local, value: unknown, here: Place): void {
  const kind = kindOf(value);
  const member = kind === undefined ? undefined : slot.byKind.get(kind);
  if (member === undefined) throw wrongType(value, [...slot.byKind.keys()]);
  const local = member.codec.decode(value, here);
  if (slot.oneof === undefined) {
    message[member.local] = local;
    return;
  }
  if ((message[slot.oneof] as OneofValue).case !== undefined) {
    throw new Fault("conflict", "the member excludes another one that is there");
  }
  message[slot.oneof] = { case: member.local, value: local };
}

function readTag(tag: Tag, plan: Plan, message: Local, json: Json, here: Place, layers: Layer[]): number {
  const own = !tag.inherited && Object.hasOwn(json, tag.name);
  const word = tag.inherited ? findOutward(tag.name, here) : own ? json[tag.name] : undefined;
  if (own && !(word === null && plan.nullIsAbsent)) checkWord(tag, word);
  const member = tag.byWord.get(word as string);
  let read = own ? 1 : 0;
  if (member !== undefined) {
    const at = layers.length;
    read += readLayer(member.plan(), json, here, layers);
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

/** The value of a member of the object at hand or of the nearest one around it. */
function findOutward(name: string, here: Place): unknown {
  for (let place: Place | undefined = here; place !== undefined; place = place.outer) {
    if (place.object !== undefined && Object.hasOwn(place.object, name)) return place.object[name];
  }
  return undefined;
}

/** Puts the members that no layer names where they are collected; else ignores them, or refuses the first of them. */
function placeStrangers(layers: readonly Layer[], json: Json, names: readonly string[], here: Place): void {
  const keeper = layers.find((layer) => layer.plan.extra !== undefined);
  if (keeper === undefined && layers[0]?.plan.ignoreUnknown === true) return;
  const extra: JsonObject = {};
  for (const name of names) {
    if (layers.some((layer) => layer.plan.names.has(name))) continue;
    try {
      if (keeper === undefined) throw new Fault("unknown_member", "the message has no such member");
      checkText(name);
      const value = json[name];
      checkFree(value, here.depth);
      setMember(extra, name, value);
    } catch (thrown) {
      throw within(thrown, { sent: name });
    }
  }
  if (keeper?.plan.extra !== undefined) keeper.message[keeper.plan.extra] = extra;
}

/** Writes a message's members into a JSON object; throws WireEncodeError. */
export function encodeObject(plan: Plan, message: Readonly<Local>, object: JsonObject, here: Place): void {
  for (const slot of plan.slots) writeSlot(slot, message, object, here);
  for (const tag of plan.tags) writeTag(tag, message, object, here);
  if (plan.extra !== undefined) writeExtra(plan, message, object);
}

function writeSlot(slot: Slot, message: Readonly<Local>, object: JsonObject, here: Place): void {
  if (slot.oneof !== undefined) {
    const chosen = message[slot.oneof] as OneofValue;
    const member = slot.members.find((each) => each.local === chosen.case);
    if (member !== undefined) object[slot.name] = member.codec.encode(chosen.value, here);
    return;
  }
  const [member] = slot.members as [Slot["members"][number]];
  const local = message[member.local];
  if (!slot.isAbsent(local)) object[slot.name] = member.codec.encode(local, here);
}

function writeTag(tag: Tag, message: Readonly<Local>, object: JsonObject, here: Place): void {
  const chosen = message[tag.oneof] as OneofValue;
  if (chosen.case === undefined) return;
  const member = tag.byLocal.get(chosen.case) as TagMember;
  if (!tag.inherited) object[tag.name] = member.word;
  else {
    const word = findOutward(tag.name, here);
    if (word !== undefined && word !== member.word) {
      throw new WireEncodeError(`the body is ${member.word} where the enclosing ${tag.name} is ${word}`);
    }
  }
  encodeObject(member.plan(), chosen.value as Local, object, here);
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
