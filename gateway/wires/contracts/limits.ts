import { type DescField, getOption, type JsonObject } from "@bufbuild/protobuf";
import {
  type FieldRules,
  field as fieldOption,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

/** The rules of a field (protovalidate) as JSON Schema keywords. Rules without an equivalent keyword are left out. */
export interface Limits {
  readonly required: boolean;
  /** The JSON Schema keywords for the field's value as a whole. */
  readonly outer: JsonObject;
  /** The JSON Schema keywords for each element of a list, or for each value of a map. */
  readonly inner: JsonObject;
}

export function limitsOf(field: DescField): Limits {
  const rules = getOption(field, fieldOption);
  const { required, type } = rules;
  switch (type.case) {
    case "repeated": {
      const { minItems, maxItems, unique, items } = type.value;
      const outer = {
        ...atLeast("minItems", minItems),
        ...(maxItems > 0n && { maxItems: Number(maxItems) }),
        ...(unique && { uniqueItems: true }),
      };
      return { required, outer, inner: items === undefined ? {} : keywords(items) };
    }
    case "map": {
      const { minPairs, maxPairs, values } = type.value;
      const outer = {
        ...atLeast("minProperties", minPairs),
        ...(maxPairs > 0n && { maxProperties: Number(maxPairs) }),
      };
      return { required, outer, inner: values === undefined ? {} : keywords(values) };
    }
    default:
      return { required, outer: keywords(rules), inner: {} };
  }
}

/** Returns the JSON Schema keywords for the rules of a single value. */
function keywords({ type }: FieldRules): JsonObject {
  switch (type.case) {
    case "string": {
      const { minLen, maxLen, len, pattern, in: allowed } = type.value;
      return {
        ...atLeast("minLength", len > 0n ? len : minLen),
        ...atMost("maxLength", len > 0n ? len : maxLen),
        ...(pattern !== "" && { pattern }),
        ...(allowed.length > 0 && { enum: [...allowed] }),
      };
    }
    case "int32":
    case "uint32":
    case "float":
    case "double":
      return bounds(type.value);
    default:
      return {};
  }
}

/** Returns the bounds of a number. A 64-bit number gets no bounds, because ProtoJSON writes it as text. */
function bounds(rules: {
  readonly lessThan: { readonly case?: string | undefined; readonly value?: number | undefined };
  readonly greaterThan: { readonly case?: string | undefined; readonly value?: number | undefined };
}): JsonObject {
  const { lessThan, greaterThan } = rules;
  return {
    ...(greaterThan.value !== undefined && {
      [greaterThan.case === "gt" ? "exclusiveMinimum" : "minimum"]: greaterThan.value,
    }),
    ...(lessThan.value !== undefined && {
      [lessThan.case === "lt" ? "exclusiveMaximum" : "maximum"]: lessThan.value,
    }),
  };
}

function atLeast(keyword: string, limit: bigint): JsonObject {
  return limit > 0n ? { [keyword]: Number(limit) } : {};
}

function atMost(keyword: string, limit: bigint): JsonObject {
  return limit > 0n ? { [keyword]: Number(limit) } : {};
}
