import { isObject, parseStrictJson } from "@depute/core";

/**
 * Simple schemas that the event loop validates. All other user code runs in a thread that can be stopped, but messages
 * to a thread cost more than a simple check. Validation on the event loop saves 24 % of the server's CPU time for
 * CheckOutput with an output of 4 KB (`npm run bench -- parts`). No schema or output can block the event loop:
 * - A schema is walked as data, never compiled to code. Only the keywords below are supported: no references,
 *   combinations, patterns, formats, or comparisons between items.
 * - Each value, each member that a schema or an object names, and every 16 characters of a measured text count as one
 *   step. A validation takes at most MAX_STEPS steps.
 * - An output has at most MAX_OUTPUT_CHARS characters, so the cost of parsing is bounded too.
 * - The event loop can only find that an output fits. In all other cases a thread validates the output again, so every
 *   refusal and its reason come from one validator.
 */

/** Maximum number of steps of one validation; they take about a millisecond. */
export const MAX_STEPS = 20_000;

/** Maximum length of an output in UTF-16 code units of JSON. */
export const MAX_OUTPUT_CHARS = 64 * 1024;

/** Keywords that do not affect validation. Definitions take effect only through references, which are not supported. */
const ANNOTATIONS = new Set([
  "$schema",
  "$id",
  "$comment",
  "title",
  "description",
  "default",
  "examples",
  "readOnly",
  "writeOnly",
  "deprecated",
  "definitions",
  "$defs",
]);

const TYPE_BITS: Readonly<Record<string, number>> = {
  null: 1,
  boolean: 2,
  number: 4,
  integer: 8,
  string: 16,
  array: 32,
  object: 64,
};
const ANY_TYPE = 127;

/** A schema that uses only supported keywords. */
export interface QuickSchema {
  /** The allowed types as bits; 0 allows none. */
  types: number;
  /** The only allowed scalars; absent if any scalar is allowed. */
  oneOf?: ReadonlySet<unknown>;
  /**
   * Bounds for four sizes: the value of a number, the code points of a text, the items of an array, and the members of
   * an object. A size without bounds is absent.
   */
  number?: Bounds;
  length?: Bounds;
  items?: Bounds;
  members?: Bounds;
  item?: QuickSchema;
  required: readonly string[];
  properties: ReadonlyMap<string, QuickSchema>;
  /** The schema of members that `properties` does not list; absent if any value is allowed. */
  additional?: QuickSchema;
}

interface Bounds {
  min: number;
  max: number;
  above: number;
  below: number;
}

/** The quantities that bounds apply to. */
type Bounded = "number" | "length" | "items" | "members";

/** Maximum supported nesting of schemas. */
const MAX_DEPTH = 32;

/** Reads a valid schema. Returns undefined if the schema has an unsupported keyword or value, or is nested too deep. */
export function readQuickSchema(schema: unknown, depth = 0): QuickSchema | undefined {
  if (schema === true) return { types: ANY_TYPE, required: [], properties: NONE };
  if (schema === false) return { types: 0, required: [], properties: NONE };
  if (!isObject(schema) || depth > MAX_DEPTH) return undefined;
  const read: QuickSchema = { types: ANY_TYPE, required: [], properties: NONE };
  for (const [word, value] of Object.entries(schema)) {
    if (!ANNOTATIONS.has(word) && !readWord(read, word, value, depth + 1)) return undefined;
  }
  return read;
}

const NONE: ReadonlyMap<string, QuickSchema> = new Map();

/** Keywords that set a minimum or a maximum. */
const BOUNDS: ReadonlyMap<string, readonly [of: Bounded, side: keyof Bounds]> = new Map([
  ["minimum", ["number", "min"]],
  ["maximum", ["number", "max"]],
  ["exclusiveMinimum", ["number", "above"]],
  ["exclusiveMaximum", ["number", "below"]],
  ["minLength", ["length", "min"]],
  ["maxLength", ["length", "max"]],
  ["minItems", ["items", "min"]],
  ["maxItems", ["items", "max"]],
  ["minProperties", ["members", "min"]],
  ["maxProperties", ["members", "max"]],
]);

function readWord(read: QuickSchema, word: string, value: unknown, depth: number): boolean {
  const bound = BOUNDS.get(word);
  if (bound !== undefined) return readBound(read, bound, value);
  switch (word) {
    case "type":
      return readTypes(read, Array.isArray(value) ? value : [value]);
    case "const":
      return readScalars(read, [value]);
    case "enum":
      return Array.isArray(value) && readScalars(read, value);
    case "items": {
      const item = readQuickSchema(value, depth);
      if (item !== undefined) read.item = item;
      return item !== undefined;
    }
    case "additionalProperties": {
      const additional = readQuickSchema(value, depth);
      if (additional !== undefined) read.additional = additional;
      return additional !== undefined;
    }
    case "required":
      if (!Array.isArray(value) || !value.every((name) => typeof name === "string" && isPlain(name)))
        return false;
      read.required = value as string[];
      return true;
    case "properties":
      return readProperties(read, value, depth);
    default:
      return false;
  }
}

function readTypes(read: QuickSchema, names: readonly unknown[]): boolean {
  read.types = 0;
  for (const name of names) {
    if (typeof name !== "string" || !Object.hasOwn(TYPE_BITS, name)) return false;
    read.types |= TYPE_BITS[name] ?? 0;
  }
  return true;
}

function readScalars(read: QuickSchema, values: readonly unknown[]): boolean {
  if (read.oneOf !== undefined || values.some((value) => typeof value === "object" && value !== null))
    return false;
  read.oneOf = new Set(values);
  return true;
}

function readBound(
  read: QuickSchema,
  [of, side]: readonly [of: Bounded, side: keyof Bounds],
  value: unknown,
): boolean {
  if (typeof value !== "number") return false;
  read[of] ??= { min: -Infinity, max: Infinity, above: -Infinity, below: Infinity };
  read[of][side] = value;
  return true;
}

function readProperties(read: QuickSchema, value: unknown, depth: number): boolean {
  if (!isObject(value)) return false;
  const properties = new Map<string, QuickSchema>();
  for (const [name, schema] of Object.entries(value)) {
    const property = isPlain(name) ? readQuickSchema(schema, depth) : undefined;
    if (property === undefined) return false;
    properties.set(name, property);
  }
  read.properties = properties;
  return true;
}

/** Whether a member name is neither `__proto__` nor empty. Ajv does not apply all rules to these two names. */
function isPlain(name: string): boolean {
  return name !== "__proto__" && name !== "";
}

/** Number of steps that one validation may still take. The validation stops when the number falls below 0. */
export interface Steps {
  remaining: number;
}

/**
 * Whether the JSON text certainly fits the schema. False if the text does not fit, is too long, or is not JSON, or if
 * {@link Steps} run out before a decision.
 */
export function fitsQuickly(
  schema: QuickSchema,
  text: string,
  steps: Steps = { remaining: MAX_STEPS },
): boolean {
  if (text.length > MAX_OUTPUT_CHARS) return false;
  let value: unknown;
  try {
    value = parseStrictJson(text);
  } catch {
    return false;
  }
  return fits(schema, value, steps);
}

/** Whether a parsed JSON value certainly fits the schema. False has the same meaning as in {@link fitsQuickly}. */
export function valueFitsQuickly(schema: QuickSchema, value: unknown): boolean {
  return fits(schema, value, { remaining: MAX_STEPS });
}

function fits(schema: QuickSchema, value: unknown, steps: Steps): boolean {
  if (--steps.remaining < 0) return false;
  if (schema.oneOf !== undefined && !schema.oneOf.has(value)) return false;
  switch (typeof value) {
    case "string":
      return (schema.types & 16) !== 0 && textFits(schema, value, steps);
    case "number":
      return numberFits(schema, value);
    case "boolean":
      return (schema.types & 2) !== 0;
    default:
      if (value === null) return (schema.types & 1) !== 0;
      return Array.isArray(value)
        ? (schema.types & 32) !== 0 && arrayFits(schema, value, steps)
        : (schema.types & 64) !== 0 && objectFits(schema, value as Record<string, unknown>, steps);
  }
}

function numberFits({ types, number }: QuickSchema, value: number): boolean {
  // JSON allows 1e999, which JavaScript parses as Infinity.
  if (!Number.isFinite(value)) return false;
  if ((types & 4) === 0 && !((types & 8) !== 0 && Number.isInteger(value))) return false;
  return number === undefined || within(number, value);
}

function textFits({ length }: QuickSchema, value: string, steps: Steps): boolean {
  if (length === undefined) return true;
  steps.remaining -= value.length >> 4;
  if (steps.remaining < 0) return false;
  let points = value.length;
  for (let i = 0; i + 1 < value.length; i++) {
    // A surrogate pair is one code point.
    if ((value.charCodeAt(i) & 0xfc00) === 0xd800 && (value.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      points -= 1;
      i += 1;
    }
  }
  return within(length, points);
}

function arrayFits({ items, item }: QuickSchema, value: readonly unknown[], steps: Steps): boolean {
  if (items !== undefined && !within(items, value.length)) return false;
  if (item === undefined) return true;
  for (const each of value) if (!fits(item, each, steps)) return false;
  return true;
}

function objectFits(
  { members, required, properties, additional }: QuickSchema,
  value: Readonly<Record<string, unknown>>,
  steps: Steps,
): boolean {
  steps.remaining -= required.length + properties.size;
  if (steps.remaining < 0) return false;
  for (const name of required) if (!Object.hasOwn(value, name)) return false;
  for (const [name, property] of properties) {
    if (Object.hasOwn(value, name) && !fits(property, value[name], steps)) return false;
  }
  if (members === undefined && additional === undefined) return true;
  const names = Object.keys(value);
  steps.remaining -= names.length;
  if (steps.remaining < 0 || (members !== undefined && !within(members, names.length))) return false;
  if (additional === undefined) return true;
  for (const name of names) {
    if (!properties.has(name) && !fits(additional, value[name], steps)) return false;
  }
  return true;
}

function within({ min, max, above, below }: Bounds, value: number): boolean {
  return value >= min && value <= max && value > above && value < below;
}
