const SPACE = /[ \t\n\r]*/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these within a string.
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /true|false|null/y;
// Matches the beginning of an escape, in a text that ends within the escape.
const PART_OF_ESCAPE = /\\(?:u[0-9a-fA-F]{0,3})?/y;
const PART_OF_NUMBER = /-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][+-]?[0-9]*)?)?|[eE][+-]?[0-9]*)?)?/y;
const PART_OF_WORD = /t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?/y;

/**
 * Returns the position at which a text stops being JSON, in characters from 0. If the text ends too early, the
 * position is the text's length. JSON.parse refuses such a text, but does not always report the position. So
 * this scan runs after each refusal by JSON.parse, in one pass without recursion.
 */
// biome-ignore lint/complexity/noExcessiveCognitiveComplexity: one loop over all characters, without a call for each
export function findSyntaxError(text: string): number {
  const open: string[] = [];
  let at = skip(SPACE, text, 0);
  for (;;) {
    // The next character at `at` must begin a value.
    const bracket = text[at];
    if (bracket === "{" || bracket === "[") {
      const close = bracket === "{" ? "}" : "]";
      at = skip(SPACE, text, at + 1);
      if (text[at] !== close) {
        open.push(close);
        if (close === "}") {
          const next = readName(text, at);
          if (next.failed) return next.at;
          at = next.at;
        }
        continue;
      }
      at++;
    } else {
      const next = readScalar(text, at);
      if (next.failed) return next.at;
      at = next.at;
    }
    // Leaves each array and object that ends after the value. A comma ends this loop, because another value follows.
    for (;;) {
      at = skip(SPACE, text, at);
      const close = open.at(-1);
      if (close === undefined || (text[at] !== close && text[at] !== ",")) return at;
      if (text[at] === ",") break;
      open.pop();
      at++;
    }
    at = skip(SPACE, text, at + 1);
    if (open.at(-1) === "}") {
      const next = readName(text, at);
      if (next.failed) return next.at;
      at = next.at;
    }
  }
}

interface Step {
  at: number;
  failed: boolean;
}

function readName(text: string, start: number): Step {
  if (text[start] !== '"') return { at: start, failed: true };
  const name = readString(text, start);
  if (name.failed) return name;
  const at = skip(SPACE, text, name.at);
  return text[at] === ":" ? { at: skip(SPACE, text, at + 1), failed: false } : { at, failed: true };
}

function readScalar(text: string, start: number): Step {
  if (text[start] === '"') return readString(text, start);
  const at = Math.max(skip(NUMBER, text, start), skip(WORD, text, start));
  if (at > start && skip(PART_OF_NUMBER, text, start) <= at) return { at, failed: false };
  return { at: Math.max(skip(PART_OF_NUMBER, text, start), skip(PART_OF_WORD, text, start)), failed: true };
}

function readString(text: string, start: number): Step {
  let at = skip(PLAIN, text, start + 1);
  while (text[at] !== '"') {
    const next = skip(ESCAPE, text, at);
    if (next === at) return { at: skip(PART_OF_ESCAPE, text, at), failed: true };
    at = skip(PLAIN, text, next);
  }
  return { at: at + 1, failed: false };
}

/**
 * Returns the end of the pattern's match at `at`; `at` itself if the pattern does not match there. The pattern must
 * be sticky.
 */
function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
