import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import {
  type FieldRules,
  field as fieldOption,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import fc from "fast-check";

/** Maximum depth of nested messages; deeper ones are left out. */
const DEPTH = 3;

type Values = fc.Arbitrary<unknown>;

/** Generates messages of a type whose values lie near the limits of their rules, on both sides. */
export function messagesOf(desc: DescMessage, depth: number = DEPTH): fc.Arbitrary<Message> {
  const loose = desc.fields.filter(({ oneof }) => oneof === undefined);
  const fields = Object.fromEntries(loose.map((field) => [field.localName, valuesOf(field, depth)]));
  const oneofs = Object.fromEntries(
    desc.oneofs.map(({ localName, fields: choices }) => {
      const chosen = choices.map((field) =>
        valuesOf(field, depth).map((value) =>
          value === undefined ? { case: undefined } : { case: field.localName, value },
        ),
      );
      return [localName, fc.oneof(fc.constant({ case: undefined }), ...chosen)];
    }),
  );
  return fc.record({ ...fields, ...oneofs }).map((values) => {
    const message = create(desc) as Message & Record<string, unknown>;
    for (const [name, value] of Object.entries(values)) if (value !== undefined) message[name] = value;
    return message;
  });
}

function valuesOf(field: DescField, depth: number): Values {
  const rules = getOption(field, fieldOption);
  switch (field.fieldKind) {
    case "list": {
      const repeated = rules.type.case === "repeated" ? rules.type.value : undefined;
      const limits = [repeated?.minItems ?? 0n, repeated?.maxItems ?? 0n].map(Number);
      const items = itemsOf(field, repeated?.items, depth);
      const lengths = [0, 1, 2, ...limits.flatMap((limit) => [limit, limit + 1])].filter((n) => n <= 70);
      return fc
        .constantFrom(...lengths)
        .chain((length) => fc.array(items, { minLength: length, maxLength: length }));
    }
    case "map":
      if (field.mapKey !== ScalarType.STRING) return fc.constant({});
      return fc.dictionary(fc.string({ maxLength: 3 }), itemsOf(field, undefined, depth), { maxKeys: 2 });
    case "message":
      if (depth === 0) return fc.constant(undefined);
      return fc.option(messagesOf(field.message, depth - 1), { nil: undefined, freq: 4 });
    default:
      return itemsOf(field, rules, depth);
  }
}

function itemsOf(field: DescField, rules: FieldRules | undefined, depth: number): Values {
  if (field.message !== undefined)
    return depth === 0 ? fc.constant(create(field.message)) : messagesOf(field.message, depth - 1);
  return field.enum === undefined ? scalars(field.scalar, rules) : numbersOf(field.enum);
}

function numbersOf({ values }: DescEnum): Values {
  return fc.constantFrom(99, ...values.map(({ number }) => number));
}

function scalars(scalar: ScalarType | undefined, rules: FieldRules | undefined): Values {
  const ruleValues =
    rules?.type.case === undefined ? {} : (rules.type.value as unknown as Record<string, unknown>);
  switch (scalar) {
    case ScalarType.STRING:
      return texts(ruleValues);
    case ScalarType.BYTES:
      return fc
        .constantFrom(...around([ruleValues.len, ruleValues.minLen, ruleValues.maxLen], 300))
        .map((n) => new Uint8Array(n));
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return fc.constantFrom(...limitsOf(ruleValues).flatMap((n) => [n - 1n, n, n + 1n]));
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -0, 0.5, ...around(limitsOf(ruleValues)));
    default:
      return fc.constantFrom(...around(limitsOf(ruleValues)));
  }
}

function limitsOf(rules: Record<string, unknown>): bigint[] {
  const ends = [rules.greaterThan, rules.lessThan] as ({ value?: number | bigint } | undefined)[];
  return [
    0n,
    1000n,
    ...ends.flatMap((end) => (end?.value === undefined ? [] : BigInt(Math.trunc(Number(end.value))))),
  ];
}

function around(limits: readonly unknown[], most: number = Number.MAX_SAFE_INTEGER): number[] {
  const numbers = limits.map((limit) => Number(limit ?? 0));
  const near = numbers
    .flatMap((n) => [n - 1, n, n + 1])
    .filter((n) => most === Number.MAX_SAFE_INTEGER || n >= 0);
  return [0, 1, ...near.filter((n) => n <= most)];
}

function texts(rules: Record<string, unknown>): Values {
  const units = ["a", "0", "é", "\u{1f600}", "\ud800", "/"];
  const lengths = around([rules.len, rules.minLen, rules.maxLen, rules.maxBytes], 300);
  const repeated = fc
    .tuple(fc.constantFrom(...units), fc.constantFrom(...lengths))
    .map(([unit, length]) => unit.repeat(length));
  const all: Values[] = [repeated, fc.string({ unit: "binary" }), fc.uuid()];
  if (typeof rules.const === "string") all.push(fc.constantFrom(rules.const, rules.const));
  for (const text of (rules.in as string[] | undefined) ?? []) all.push(fc.constant(text));
  if (typeof rules.pattern === "string" && rules.pattern !== "") {
    const matching = fc.stringMatching(new RegExp(rules.pattern, "u"));
    all.push(
      matching,
      matching,
      matching.map((text) => `${text}\n`),
    );
  }
  return fc.oneof(...all);
}
