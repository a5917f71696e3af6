/** What a JSON text is held to before it is parsed. */
export interface JsonLimits {
  /** Deepest nesting of objects and arrays; a scalar has depth 0. Absent: MAX_JSON_DEPTH. */
  readonly maxDepth?: number | undefined;
  /** Values of any kind, each name of a member counted as well. Absent: MAX_JSON_VALUES. */
  readonly maxValues?: number | undefined;
}

/** Why a JSON text is not parsed. */
export type JsonFault =
  | { readonly kind: "too_deep"; readonly max: number }
  | { readonly kind: "too_many_values"; readonly max: number }
  /** Two members of one object have one name. Readers differ in which of them counts (RFC 8259 section 4). */
  | { readonly kind: "duplicate_member"; readonly name: string };

/** Deepest nesting that any reader of the platform takes. */
export const MAX_JSON_DEPTH = 100;

/** Most values and names of one text. Reading and storing so many takes some tens of milliseconds. */
export const MAX_JSON_VALUES = 50_000;

/**
 * Looks through a JSON text in one pass, without recursion, before JSON.parse allocates anything for it. A text that is
 * no JSON may pass: the parser says so.
 *
 * @returns a limit that is passed, else the first member that stands twice, else undefined
 */
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: one loop over all characters, without a call for each
export function scanJson(text: string, limits: JsonLimits = {}): JsonFault | undefined {
  const { maxDepth = MAX_JSON_DEPTH, maxValues = MAX_JSON_VALUES } = limits;
  /** The names of each open object; undefined for an open array. */
  const open: (Set<string> | undefined)[] = [];
  let values = 0;
  // A text right after `{`, or after a comma within an object, is a name.
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
        // A number or a word counts at its first sign.
        if (isBare(text, at) && !isBare(text, at - 1)) {
          if (++values > maxValues) return { kind: "too_many_values", max: maxValues };
        }
    }
  }
  return duplicate;
}

/**
 * The value of a JSON text that is signed, hashed or kept, in which no member stands twice.
 *
 * @throws SyntaxError for what is no JSON, or has a fault
 */
export function parseStrictJson(text: string, limits: JsonLimits = {}): unknown {
  const fault = scanJson(text, limits);
  if (fault !== undefined) throw new SyntaxError(jsonFaultText(fault));
  return JSON.parse(text);
}

/** A fault in words. */
export function jsonFaultText(fault: JsonFault): string {
  switch (fault.kind) {
    case "too_deep":
      return `objects and arrays are nested deeper than ${fault.max} levels`;
    case "too_many_values":
      return `the text holds more than ${fault.max} values and names`;
    case "duplicate_member":
      return `the member ${JSON.stringify(fault.name.slice(0, 64).toWellFormed())} stands twice in one object`;
  }
}

const [QUOTE, BACKSLASH, COMMA, BRACE, BRACKET, END_BRACE, END_BRACKET] = [...'"\\,{[}]'].map((sign) =>
  sign.charCodeAt(0),
) as [number, number, number, number, number, number, number];

/** The place of the quote that ends a text; the last place for a text without end. */
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

/** A name, its escapes read: `"a"` and `"\u0061"` are one. */
function nameOf(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end);
  if (!raw.includes("\\")) return raw;
  try {
    return JSON.parse(text.slice(start, end + 1)) as string;
  } catch {
    // The parser refuses the whole text.
    return raw;
  }
}

/** Whether a sign belongs to a number or a word. */
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
