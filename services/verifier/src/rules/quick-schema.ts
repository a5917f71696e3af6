import { isObject, parseStrictJson } from "@depute/core";

/**
 * Which schemas are judged where an output arrives, and how. Everything else that users wrote runs in a thread that can
 * be stopped; handing a check over and back costs more than a simple one takes, though. What is let in here cannot hold
 * the event loop, whatever schema and output are. It saves 49 % of the server's CPU time of CheckOutput with an output of
 * 4 KB (`npm run bench -- parts`):
 *
 * - A schema is data that is walked, never code that is made of it, and only the words below are understood: none that
 *   refers, combines, matches patterns or formats, or compares items with one another.
 * - Walking is counted. Each word that is looked at, each member and each item is a step, a text one for each 16 of its
 *   characters, and there are no more than MAX_STEPS, however schema and output are matched to one another.
 * - An output has at most MAX_OUTPUT_CHARS, so that reading it is bounded too.
 * - The only answer is that an output fits. What does not fit, takes too many steps or is no JSON is judged in the
 *   thread as if nobody had looked before: whoever refuses an output, and says why, is always the same.
 */

/** Steps of one judgement: about a millisecond. */
export const MAX_STEPS = 20_000;

/** Longest output, in UTF-16 code units of JSON. */
export const MAX_OUTPUT_CHARS = 64 * 1024;

/** Words that say nothing about whether a value fits. Definitions do only where something refers to them. */
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

/** A schema of which every word is understood here. */
export interface QuickSchema {
  /** The types that fit, by their bits; 0 fits nothing. */
  types: number;
  /** Scalars, one of which it has to be. */
  oneOf?: ReadonlySet<unknown>;
  /** Bounds of a number, a text's length in code points, an array's items, an object's members. */
  number?: Bounds;
  length?: Bounds;
  items?: Bounds;
  members?: Bounds;
  item?: QuickSchema;
  required: readonly string[];
  properties: ReadonlyMap<string, QuickSchema>;
  /** What members fit that `properties` does not name; absent for any. */
  additional?: QuickSchema;
}

interface Bounds {
  min: number;
  max: number;
  above: number;
  below: number;
}

/** What can be bounded. */
type Bounded = "number" | "length" | "items" | "members";

/** How deep schemas are nested at most; deeper ones are not read. */
const MAX_DEPTH = 32;

/** Reads a schema that compiles; undefined for one that has a word which is not understood here. */
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

/** Words that bound something from one side. */
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

/** A name that means to every object what it says, and that no one passes over, as Ajv does the empty one. */
function isPlain(name: string): boolean {
  return name !== "__proto__" && name !== "";
}

/** Counts down; at 0 walking ends. */
export interface Steps {
  left: number;
}

/** Whether the JSON text is of a value that was found to fit; false also when that was not found out. */
export function fitsQuickly(schema: QuickSchema, text: string, steps: Steps = { left: MAX_STEPS }): boolean {
  if (text.length > MAX_OUTPUT_CHARS) return false;
  let value: unknown;
  try {
    value = parseStrictJson(text);
  } catch {
    return false;
  }
  return fits(schema, value, steps);
}

function fits(schema: QuickSchema, value: unknown, steps: Steps): boolean {
  if (--steps.left < 0) return false;
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
  // 1e999 is JSON and no number.
  if (!Number.isFinite(value)) return false;
  if ((types & 4) === 0 && !((types & 8) !== 0 && Number.isInteger(value))) return false;
  return number === undefined || within(number, value);
}

function textFits({ length }: QuickSchema, value: string, steps: Steps): boolean {
  if (length === undefined) return true;
  steps.left -= value.length >> 4;
  if (steps.left < 0) return false;
  let points = value.length;
  for (let i = 0; i + 1 < value.length; i++) {
    // A pair of surrogates is one code point.
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
  steps.left -= required.length + properties.size;
  if (steps.left < 0) return false;
  for (const name of required) if (!Object.hasOwn(value, name)) return false;
  for (const [name, property] of properties) {
    if (Object.hasOwn(value, name) && !fits(property, value[name], steps)) return false;
  }
  if (members === undefined && additional === undefined) return true;
  const names = Object.keys(value);
  steps.left -= names.length;
  if (steps.left < 0 || (members !== undefined && !within(members, names.length))) return false;
  if (additional === undefined) return true;
  for (const name of names) {
    if (!properties.has(name) && !fits(additional, value[name], steps)) return false;
  }
  return true;
}

function within({ min, max, above, below }: Bounds, value: number): boolean {
  return value >= min && value <= max && value > above && value < below;
}
