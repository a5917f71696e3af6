import type { DescField, DescMessage, DescOneof } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import type { JsonKind } from "./codec.ts";
import { type Codec, type MessageCodecs, WireContractError } from "./codec.ts";
import { fieldCodec } from "./field.ts";
import { fieldOptions, fileOptions, isInline, isTagged, oneofOptions, tagWord, wireName } from "./names.ts";

/** A field of a message, and the codec of the field's value. */
export interface Member {
  /** The name that holds the value in protobuf-es: a property of the message, or a case of the oneof. */
  readonly local: string;
  readonly codec: Codec;
}

/** One member of the JSON object: a field, or several members of a oneof that share one name. */
export interface Slot {
  readonly name: string;
  /** The name of the oneof that contains the members; undefined if the field is in no oneof. */
  readonly oneof: string | undefined;
  readonly members: readonly Member[];
  /** For each kind of JSON value, the member that accepts it. */
  readonly byKind: ReadonlyMap<JsonKind, Member>;
  /** Whether the member must be present in a document. */
  readonly required: boolean;
  /** Whether the encoder leaves out the member, given the member's value in protobuf-es. */
  readonly isAbsent: (local: unknown) => boolean;
}

/**
 * A oneof with a tag. The tag's word selects a member of the oneof, and the selected member's fields are in the same
 * JSON object.
 */
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

/** Describes the JSON object of a message. */
export interface Plan {
  readonly desc: DescMessage;
  readonly slots: readonly Slot[];
  readonly tags: readonly Tag[];
  /** The names of this object's slots, and of its tags that are not inherited. */
  readonly names: ReadonlySet<string>;
  /**
   * The property that collects unknown members; undefined if the message collects none. A member is unknown if
   * neither this message nor a message merged by a tag defines it.
   */
  readonly extra: string | undefined;
  readonly nullIsAbsent: boolean;
  /**
   * Whether the decoder ignores unknown members; otherwise it refuses them. A member is unknown if neither this
   * message nor a message merged by a tag defines it.
   */
  readonly ignoreUnknown: boolean;
}

const plans = new WeakMap<DescMessage, Plan>();

/**
 * Returns the plan of a message. Creates the plan at the first call for a message type. Throws WireContractError if
 * the message's wire options contradict each other.
 */
export function planOf(desc: DescMessage, messages: MessageCodecs): Plan {
  let plan = plans.get(desc);
  if (plan === undefined) {
    plan = makePlan(desc, messages);
    plans.set(desc, plan);
  }
  return plan;
}

function makePlan(desc: DescMessage, messages: MessageCodecs): Plan {
  const plain = desc.fields.filter((field) => !fieldOptions(field).extraMembers && !isTagged(field));
  const slots = [...Map.groupBy(plain, wireName)].map(([name, fields]) => makeSlot(name, fields, messages));
  const names = new Set(slots.map((slot) => slot.name));
  const tags = desc.oneofs
    .filter((oneof) => oneofOptions(oneof).tag !== "")
    .map((oneof) => makeTag(oneof, names, messages));
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

function makeSlot(name: string, fields: readonly DescField[], messages: MessageCodecs): Slot {
  const [first] = fields as [DescField];
  const members = fields.map((field) => ({ local: field.localName, codec: fieldCodec(field, messages) }));
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

/**
 * Returns the member for each kind of JSON value.
 *
 * @throws WireContractError if two members accept the same kind
 */
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
  // A JSON field with empty bytes counts as absent, because an empty text is not JSON.
  if (fieldOptions(field).json && field.fieldKind === "scalar") return isEmpty;
  if (hasPresence(field)) return (local) => local === undefined;
  return fieldOptions(field).omitEmpty ? isEmpty : () => false;
}

function isEmpty(local: unknown): boolean {
  if (Array.isArray(local) || local instanceof Uint8Array) return local.length === 0;
  if (typeof local === "object" && local !== null) return Object.keys(local).length === 0;
  return !local;
}

function makeTag(oneof: DescOneof, names: ReadonlySet<string>, messages: MessageCodecs): Tag {
  const { tag, inherited } = oneofOptions(oneof);
  const members = oneof.fields.map((field) =>
    makeTagMember(field, names, inherited ? undefined : tag, messages),
  );
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

function makeTagMember(
  field: DescField,
  names: ReadonlySet<string>,
  tag: string | undefined,
  messages: MessageCodecs,
): TagMember {
  const desc = field.message;
  if (field.fieldKind !== "message" || desc === undefined || isInline(desc)) {
    throw new WireContractError(
      `${field}: a member of a tagged oneof must be a message with members of its own`,
    );
  }
  let checked: Plan | undefined;
  const plan = () => {
    if (checked !== undefined) return checked;
    const ownPlan = planOf(desc, messages);
    for (const name of ownPlan.names) {
      if (names.has(name) || name === tag) {
        throw new WireContractError(`${field}: the merged member ${name} is also the outer object's`);
      }
    }
    checked = ownPlan;
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
