import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type ListValue, NullValue, type Struct, type Value } from "@bufbuild/protobuf/wkt";
import { kindOf } from "./codec.ts";
import { Fault, within } from "./error.ts";

/**
 * Checks a JSON value that has no contract. Numbers must be finite, strings must have a UTF-8 form, and nesting must
 * not exceed `depth` levels (a scalar has 0). Throws Fault.
 */
export function checkFree(value: unknown, depth: number): asserts value is JsonValue {
  switch (kindOf(value)) {
    case "null":
    case "boolean":
      return;
    case "number":
      return checkFinite(value as number);
    case "string":
      return checkText(value as string);
    case "array":
      return checkItems(value as unknown[], depth);
    case "object":
      return checkMembers(value as Record<string, unknown>, depth);
    default:
      throw new Fault("wrong_type", `a ${typeof value} is not JSON`);
  }
}

export function checkFinite(value: number): void {
  if (!Number.isFinite(value)) throw new Fault("number_range", "the number is too large");
}

export function checkText(text: string): void {
  if (!text.isWellFormed()) throw new Fault("lone_surrogate", "a string holds half of a surrogate pair");
}

export function tooDeep(): Fault {
  return new Fault("too_deep", "objects and arrays are nested too deep");
}

function checkItems(items: readonly unknown[], depth: number): void {
  if (depth <= 0) throw tooDeep();
  for (let i = 0; i < items.length; i++) {
    try {
      checkFree(items[i], depth - 1);
    } catch (thrown) {
      throw within(thrown, i);
    }
  }
}

function checkMembers(object: Record<string, unknown>, depth: number): void {
  if (depth <= 0) throw tooDeep();
  for (const name of Object.keys(object)) {
    try {
      checkText(name);
      checkFree(object[name], depth - 1);
    } catch (thrown) {
      throw within(thrown, { sent: name });
    }
  }
}

/** Sets a member of a plain object. The name `__proto__` becomes an ordinary member. */
export function setMember<T>(object: Record<string, T>, name: string, value: T): void {
  if (name === "__proto__") {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  } else object[name] = value;
}

/** Converts a checked JSON value to a google.protobuf.Value. */
export function toValue(json: JsonValue): Value {
  return { $typeName: "google.protobuf.Value", kind: toKind(json) };
}

function toKind(json: JsonValue): Value["kind"] {
  if (json === null) return { case: "nullValue", value: NullValue.NULL_VALUE };
  if (typeof json === "string") return { case: "stringValue", value: json };
  if (typeof json === "number") return { case: "numberValue", value: json };
  if (typeof json === "boolean") return { case: "boolValue", value: json };
  if (Array.isArray(json)) return { case: "listValue", value: toListValue(json) };
  return { case: "structValue", value: toStruct(json) };
}

export function toListValue(items: readonly JsonValue[]): ListValue {
  return { $typeName: "google.protobuf.ListValue", values: items.map(toValue) };
}

function toStruct(object: JsonObject): Struct {
  const fields: Record<string, Value> = {};
  for (const name of Object.keys(object)) setMember(fields, name, toValue(object[name] as JsonValue));
  return { $typeName: "google.protobuf.Struct", fields };
}

/** Returns the JSON value in a google.protobuf.Value; undefined if no member of the Value's `kind` is set. */
export function fromValue(value: Value): JsonValue | undefined {
  switch (value.kind.case) {
    case "nullValue":
      return null;
    case "structValue":
      return fromStruct(value.kind.value);
    case "listValue":
      return fromListValue(value.kind.value);
    case undefined:
      return undefined;
    default:
      return value.kind.value;
  }
}

export function fromListValue(list: ListValue): JsonValue[] {
  return list.values.map((value) => fromValue(value) ?? null);
}

function fromStruct(struct: Struct): JsonObject {
  const object: JsonObject = {};
  for (const name of Object.keys(struct.fields)) {
    setMember(object, name, fromValue(struct.fields[name] as Value) ?? null);
  }
  return object;
}
