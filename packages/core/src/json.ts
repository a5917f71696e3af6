/** Whether a value is an object in the sense of JSON: not an array and not null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Limits of a JSON text, which are checked before the text is parsed. */
export interface JsonLimits {
  /** Deepest nesting of objects and arrays; a scalar has depth 0. Absent: MAX_JSON_DEPTH. */
  readonly maxDepth?: number | undefined;
  /** Maximum number of values, including the names of members. Absent: MAX_JSON_VALUES. */
  readonly maxValues?: number | undefined;
}

/** The reason why a JSON text is refused. */
export type JsonFault =
  | { readonly kind: "too_deep"; readonly max: number }
  | { readonly kind: "too_many_values"; readonly max: number }
  /** Two members of one object have the same name. Readers differ in which of the two counts (RFC 8259 section 4). */
  | { readonly kind: "duplicate_member"; readonly name: string };

/** Deepest nesting of JSON that any part of the platform accepts. */
export const MAX_JSON_DEPTH = 100;

/** Maximum number of values and names in one text. Reading and storing such a text takes some tens of milliseconds. */
export const MAX_JSON_VALUES = 50_000;

/**
 * Checks a JSON text in one pass, without recursion, before JSON.parse allocates memory for it. A text that is not
 * JSON may pass this check; JSON.parse then refuses it.
 *
 * @returns an exceeded limit; otherwise the first duplicate member; undefined if there is neither
 */
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: one loop over all characters, without a call for each
export function scanJson(text: string, limits: JsonLimits = {}): JsonFault | undefined {
  const { maxDepth = MAX_JSON_DEPTH, maxValues = MAX_JSON_VALUES } = limits;
  /**
   * The member names read so far of each object or array that is not closed yet, outermost first; undefined for an
   * array.
   */
  const open: (Set<string> | undefined)[] = [];
  let values = 0;
  // Within an object, a string right after `{` or after a comma is a member's name.
  let isName = false;
  let duplicate: JsonFault | undefined;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = endOfText(text, at);
        if (isName) {
          const names = open.at(-1);
          const name = nameOf(text, at, end);
          if (names?.has(name) === true) duplicate ??= { kind: "duplicate_member", name };
          names?.add(name);
        }
        isName = false;
        if (++values > maxValues) return { kind: "too_many_values", max: maxValues };
        at = end;
        break;
      }
      case BRACE:
      case BRACKET:
        isName = text.charCodeAt(at) === BRACE;
        open.push(isName ? new Set() : undefined);
        if (open.length > maxDepth) return { kind: "too_deep", max: maxDepth };
        if (++values > maxValues) return { kind: "too_many_values", max: maxValues };
        break;
      case END_BRACE:
      case END_BRACKET:
        open.pop();
        isName = false;
        break;
      case COMMA:
        isName = open.at(-1) !== undefined;
        break;
      default:
        // A number, `true`, `false` or `null` is counted at its first character.
        if (isBare(text, at) && !isBare(text, at - 1)) {
          if (++values > maxValues) return { kind: "too_many_values", max: maxValues };
        }
    }
  }
  return duplicate;
}

/**
 * Parses a JSON text that is signed, hashed or stored, and refuses duplicate members.
 *
 * @throws SyntaxError for a text that is not JSON, exceeds a limit, or has duplicate members
 */
export function parseStrictJson(text: string, limits: JsonLimits = {}): unknown {
  const fault = scanJson(text, limits);
  if (fault !== undefined) throw new SyntaxError(jsonFaultText(fault));
  return JSON.parse(text);
}

/** Describes a fault in words. */
export function jsonFaultText(fault: JsonFault): string {
  switch (fault.kind) {
    case "too_deep":
      return `objects and arrays are nested deeper than ${fault.max} levels`;
    case "too_many_values":
      return `the text contains more than ${fault.max} values and names`;
    case "duplicate_member":
      return `the member ${JSON.stringify(fault.name.slice(0, 64).toWellFormed())} occurs twice in one object`;
  }
}

const [QUOTE, BACKSLASH, COMMA, BRACE, BRACKET, END_BRACE, END_BRACKET] = [...'"\\,{[}]'].map((sign) =>
  sign.charCodeAt(0),
) as [number, number, number, number, number, number, number];

/** Returns the position of a string's closing quote; the text's last position if the quote is missing. */
function endOfText(text: string, start: number): number {
  for (let at = start + 1; ; ) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length - 1;
    let escapes = 0;
    while (quote - escapes - 1 > start && text.charCodeAt(quote - escapes - 1) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return quote;
    at = quote + 1;
  }
}

/** Decodes the escapes of a member's name, because `"a"` and `"\u0061"` are the same name. */
function nameOf(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end);
  if (!raw.includes("\\")) return raw;
  try {
    return JSON.parse(text.slice(start, end + 1)) as string;
  } catch {
    // The name has an invalid escape, so the parser will refuse the whole text.
    return raw;
  }
}

/** Whether a character can belong to a number, `true`, `false` or `null`. */
function isBare(text: string, at: number): boolean {
  const sign = text.charCodeAt(at);
  return (
    (sign >= 97 && sign <= 122) ||
    (sign >= 48 && sign <= 57) ||
    sign === 45 ||
    sign === 46 ||
    sign === 43 ||
    sign === 69
  );
}
