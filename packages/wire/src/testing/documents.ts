import {
  type DescField,
  type DescMessage,
  type DescOneof,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import fc from "fast-check";
import { messageCodec } from "../message.ts";
import { enumWords, fieldOptions, isInline, isTagged, oneofOptions, tagWord, wireName } from "../names.ts";
import { planOf } from "../plan.ts";

/**
 * The enum words in the surrounding objects, by member name. A oneof with an inherited tag takes its tag from
 * these words.
 */
type Words = Readonly<Record<string, JsonValue | undefined>>;

/** Texts with a UTF-8 form. Some are names that plain objects inherit. */
const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("__proto__", "constructor", "toString", ""),
);

/** JSON numbers without -0, because JSON texts lose the sign of zero. */
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);

/** JSON values with a few levels of nesting. */
const freeJson: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    number,
    text,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(text, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;

const freeObject = fc.dictionary(text, freeJson, {
  maxKeys: 3,
  noNullPrototype: true,
}) as fc.Arbitrary<JsonObject>;

/** Generates documents that a contract's wire options allow. Rules for values are ignored. */
export function documentsOf(desc: DescMessage, depth = 3, around: Words = {}): fc.Arbitrary<JsonValue> {
  return isInline(desc) ? inlineDocuments(desc, depth, around) : objects(desc, depth, around, new Set());
}

function inlineDocuments(desc: DescMessage, depth: number, around: Words): fc.Arbitrary<JsonValue> {
  return fc.oneof(...desc.fields.map((field) => values(field, depth, around)));
}

/**
 * Generates the object of a message's members.
 *
 * @param usedNames names that an outer message already uses
 */
function objects(
  desc: DescMessage,
  depth: number,
  around: Words,
  usedNames: ReadonlySet<string>,
): fc.Arbitrary<JsonObject> {
  const fields = desc.fields.filter(
    (field) => !fieldOptions(field).extraMembers && field.oneof === undefined,
  );
  const words = fields.filter((field) => field.fieldKind === "enum");
  const others = fields.filter((field) => field.fieldKind !== "enum");
  const names = new Set([...usedNames, ...planOf(desc, messageCodec).names]);
  return members(words, depth, around).chain((own) => {
    const inner = { ...around, ...own };
    return fc
      .tuple(
        members(others, depth, inner),
        ...desc.oneofs.map((oneof) => oneofMembers(oneof, depth, inner, names)),
        extraMembers(desc, names),
      )
      .map((parts) => Object.assign({}, own, ...parts.slice(0, -1), parts.at(-1)) as JsonObject);
  });
}

function members(fields: readonly DescField[], depth: number, around: Words): fc.Arbitrary<JsonObject> {
  const required = fields.filter((field) =>
    planOf(field.parent, messageCodec).slots.some((s) => s.required && s.name === wireName(field)),
  );
  // At depth 0 and below, uses only the required members, so that recursive messages end.
  const used = depth > 0 ? fields : required;
  return fc.record(Object.fromEntries(used.map((field) => [wireName(field), values(field, depth, around)])), {
    requiredKeys: required.map(wireName),
    noNullPrototype: true,
  }) as fc.Arbitrary<JsonObject>;
}

function oneofMembers(
  oneof: DescOneof,
  depth: number,
  around: Words,
  usedNames: ReadonlySet<string>,
): fc.Arbitrary<JsonObject> {
  const none = fc.constant<JsonObject>({});
  const { tag, inherited } = oneofOptions(oneof);
  // An outer object has the inherited tag, and the tag's word has already selected a member. So the member is
  // generated at every depth.
  if (depth <= 0 && !inherited) return none;
  if (tag === "") {
    return fc.oneof(
      none,
      ...oneof.fields.map((field) =>
        values(field, depth, around).map((value) => ({ [wireName(field)]: value })),
      ),
    );
  }
  const merged = (field: DescField) => objects(field.message as DescMessage, depth - 1, around, usedNames);
  if (inherited) {
    const chosen = oneof.fields.find((field) => tagWord(field) === around[tag]);
    return chosen === undefined ? none : merged(chosen);
  }
  return fc.oneof(
    none,
    ...oneof.fields.map((field) => merged(field).map((rest) => ({ [tag]: tagWord(field), ...rest }))),
  );
}

function extraMembers(desc: DescMessage, usedNames: ReadonlySet<string>): fc.Arbitrary<JsonObject> {
  const collects = desc.fields.some((field) => fieldOptions(field).extraMembers);
  if (!collects) return fc.constant({});
  const names = text.map((name) => `x-${name}`).filter((name) => !usedNames.has(name));
  return fc.dictionary(names, freeJson, { maxKeys: 2, noNullPrototype: true }) as fc.Arbitrary<JsonObject>;
}

function values(field: DescField, depth: number, around: Words): fc.Arbitrary<JsonValue> {
  // The option omit_empty drops an empty list, so lists under this option have at least one item.
  const least = fieldOptions(field).omitEmpty || isTagged(field) ? 1 : 0;
  switch (field.fieldKind) {
    case "list":
      return fc.array(single(field, depth - 1, around), {
        minLength: least,
        maxLength: depth > 0 ? 3 : least,
      });
    case "map":
      return fc.dictionary(text, single(field, depth - 1, around), {
        minKeys: least,
        maxKeys: depth > 0 ? 3 : least,
        noNullPrototype: true,
      }) as fc.Arbitrary<JsonValue>;
    default:
      return single(field, depth - 1, around);
  }
}

function single(field: DescField, depth: number, around: Words): fc.Arbitrary<JsonValue> {
  if (field.message !== undefined) {
    switch (field.message.typeName) {
      case "google.protobuf.Struct":
        return freeObject;
      case "google.protobuf.Value":
        return freeJson;
      case "google.protobuf.ListValue":
        return fc.array(freeJson, { maxLength: 3 });
      default:
        return documentsOf(field.message, depth, around);
    }
  }
  if (field.enum !== undefined) {
    if (field.enum.typeName === "google.protobuf.NullValue") return fc.constant(null);
    return fc.constantFrom(...enumWords(field.enum).values());
  }
  return scalar(field.scalar as ScalarType);
}

function scalar(type: ScalarType): fc.Arbitrary<JsonValue> {
  switch (type) {
    case ScalarType.STRING:
      return text;
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.DOUBLE:
      return number;
    case ScalarType.FLOAT:
      return fc.integer({ min: -9999, max: 9999 }).map((value) => value / 1000);
    case ScalarType.INT32:
      return fc.integer();
    case ScalarType.INT64:
      return fc.maxSafeInteger();
    case ScalarType.BYTES:
      return freeJson;
    default:
      throw new Error(`no documents for scalar type ${type}`);
  }
}
