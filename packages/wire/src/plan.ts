import type { DescField, DescMessage, DescOneof } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { type Codec, WireContractError } from "./codec.ts";
import { fieldCodec } from "./field.ts";
import type { JsonKind } from "./kind.ts";
import { fieldOptions, fileOptions, isInline, isTagged, oneofOptions, tagWord, wireName } from "./names.ts";

/** A field and how its value appears. */
export interface Member {
  /** The property of the message, or of the oneof's case. */
  readonly local: string;
  readonly codec: Codec;
}

/** One member of the JSON object: a field, or several members of one oneof that share the name. */
export interface Slot {
  readonly name: string;
  /** The property of the oneof that the members belong to. */
  readonly oneof: string | undefined;
  readonly members: readonly Member[];
  /** Which member takes which kind of value. */
  readonly byKind: ReadonlyMap<JsonKind, Member>;
  /** Whether the member is always there. */
  readonly required: boolean;
  /** Whether a local value is written as an absent member. */
  readonly isAbsent: (local: unknown) => boolean;
}

/** A oneof whose member is named by a tag and merged into the object. */
export interface Tag {
  readonly name: string;
  readonly inherited: boolean;
  readonly oneof: string;
  readonly byWord: ReadonlyMap<string, TagMember>;
  readonly byLocal: ReadonlyMap<string, TagMember>;
}

export interface TagMember {
  readonly local: string;
  readonly word: string;
  readonly plan: () => Plan;
}

/** How a message appears as a JSON object. */
export interface Plan {
  readonly desc: DescMessage;
  readonly slots: readonly Slot[];
  readonly tags: readonly Tag[];
  /** The names of slots and of tags that stand in the object itself. */
  readonly names: ReadonlySet<string>;
  /** The property that collects the members which no layer of the object names. */
  readonly extra: string | undefined;
  readonly nullIsAbsent: boolean;
  /** Whether members that no layer of the object names are ignored; refused otherwise. */
  readonly ignoreUnknown: boolean;
}

const plans = new WeakMap<DescMessage, Plan>();

/** The plan of a message, made once. Throws WireContractError when its options contradict each other. */
export function planOf(desc: DescMessage): Plan {
  let plan = plans.get(desc);
  if (plan === undefined) {
    plan = makePlan(desc);
    plans.set(desc, plan);
  }
  return plan;
}

function makePlan(desc: DescMessage): Plan {
  const plain = desc.fields.filter((field) => !fieldOptions(field).extraMembers && !isTagged(field));
  const slots = [...Map.groupBy(plain, wireName)].map(([name, fields]) => makeSlot(name, fields));
  const names = new Set(slots.map((slot) => slot.name));
  const tags = desc.oneofs
    .filter((oneof) => oneofOptions(oneof).tag !== "")
    .map((oneof) => makeTag(oneof, names));
  for (const tag of tags) if (!tag.inherited) addName(names, tag.name, desc);
  return {
    desc,
    slots,
    tags,
    names,
    extra: extraField(desc)?.localName,
    nullIsAbsent: fileOptions(desc.file).nullIsAbsent,
    ignoreUnknown: fileOptions(desc.file).ignoreUnknown,
  };
}

function addName(names: Set<string>, name: string, desc: DescMessage): void {
  if (names.has(name)) throw new WireContractError(`${desc.typeName}: two members are named ${name}`);
  names.add(name);
}

function makeSlot(name: string, fields: readonly DescField[]): Slot {
  const [first] = fields as [DescField];
  const members = fields.map((field) => ({ local: field.localName, codec: fieldCodec(field) }));
  if (
    fields.some((field) => field.oneof !== first.oneof) ||
    (fields.length > 1 && first.oneof === undefined)
  ) {
    throw new WireContractError(
      `${first.parent.typeName}: only members of one oneof may share the name ${name}`,
    );
  }
  return {
    name,
    oneof: first.oneof?.localName,
    members,
    byKind: byKind(members, `${first.parent.typeName}.${name}`),
    required: !hasPresence(first) && !fieldOptions(first).omitEmpty,
    isAbsent: absence(first),
  };
}

/** Which of several members takes which kind; no two may take the same. */
export function byKind(members: readonly Member[], where: string): Map<JsonKind, Member> {
  const chosen = new Map<JsonKind, Member>();
  for (const member of members) {
    for (const kind of member.codec.kinds) {
      if (chosen.has(kind)) throw new WireContractError(`${where}: two members take a JSON ${kind}`);
      chosen.set(kind, member);
    }
  }
  return chosen;
}

function hasPresence(field: DescField): boolean {
  return field.presence !== FeatureSet_FieldPresence.IMPLICIT;
}

function absence(field: DescField): (local: unknown) => boolean {
  // An empty text is no JSON: bytes that hold JSON and are empty stand for no value at all.
  if (fieldOptions(field).json && field.fieldKind === "scalar") return isEmpty;
  if (hasPresence(field)) return (local) => local === undefined;
  return fieldOptions(field).omitEmpty ? isEmpty : () => false;
}

function isEmpty(local: unknown): boolean {
  if (Array.isArray(local) || local instanceof Uint8Array) return local.length === 0;
  if (typeof local === "object" && local !== null) return Object.keys(local).length === 0;
  return !local;
}

function makeTag(oneof: DescOneof, names: ReadonlySet<string>): Tag {
  const { tag, inherited } = oneofOptions(oneof);
  const members = oneof.fields.map((field) => makeTagMember(field, names, inherited ? undefined : tag));
  const byWord = new Map(members.map((member) => [member.word, member]));
  if (byWord.size !== members.length) throw new WireContractError(`${oneof}: two members share a word`);
  return {
    name: tag,
    inherited,
    oneof: oneof.localName,
    byWord,
    byLocal: new Map(members.map((member) => [member.local, member])),
  };
}

function makeTagMember(field: DescField, names: ReadonlySet<string>, tag: string | undefined): TagMember {
  const desc = field.message;
  if (field.fieldKind !== "message" || desc === undefined || isInline(desc)) {
    throw new WireContractError(
      `${field}: a member of a tagged oneof must be a message with members of its own`,
    );
  }
  let checked: Plan | undefined;
  const plan = () => {
    if (checked !== undefined) return checked;
    const own = planOf(desc);
    for (const name of own.names) {
      if (names.has(name) || name === tag) {
        throw new WireContractError(`${field}: the merged member ${name} is also the outer object's`);
      }
    }
    checked = own;
    return checked;
  };
  return { local: field.localName, word: tagWord(field), plan };
}

function extraField(desc: DescMessage): DescField | undefined {
  const [field, second] = desc.fields.filter((each) => fieldOptions(each).extraMembers);
  if (second !== undefined)
    throw new WireContractError(`${desc.typeName}: only one field may collect extra members`);
  if (field !== undefined && field.message?.typeName !== "google.protobuf.Struct") {
    throw new WireContractError(`${field}: extra members need a google.protobuf.Struct`);
  }
  return field;
}
