/**
 * This file translates JavaScript's regular expressions to RE2's syntax. The two look alike, but these constructs
 * differ in meaning: `\s` and `.`, `[^]`, `\u`, identity escapes, RE2's extensions. An untranslated pattern could
 * silently accept other texts. The translator therefore parses and rewrites each construct, and refuses unknown
 * ones.
 */

export interface TranslationOptions {
  /** Flag s: `.` also matches line ends. */
  dotAll: boolean;
  /** Flag u: allows `\u{...}` and `\p{...}`, and forbids identity escapes of letters. */
  unicode: boolean;
}
export type Translation = { source: string } | { problem: string };

const SPACE =
  "\\t\\n\\x{b}\\f\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
const NOT_SPACE =
  "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}" +
  "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}";
const ANY = "[\\x{0}-\\x{10ffff}]";
const NOTHING = "[^\\x{0}-\\x{10ffff}]";
const NOT_LINE_END = "[^\\n\\r\\x{2028}\\x{2029}]";

/** RE2's short names of Unicode general categories, by the long names that JavaScript also allows. */
const CATEGORIES: Record<string, string> = {
  Letter: "L",
  Uppercase_Letter: "Lu",
  Lowercase_Letter: "Ll",
  Titlecase_Letter: "Lt",
  Modifier_Letter: "Lm",
  Other_Letter: "Lo",
  Mark: "M",
  Combining_Mark: "M",
  Nonspacing_Mark: "Mn",
  Spacing_Mark: "Mc",
  Enclosing_Mark: "Me",
  Number: "N",
  Decimal_Number: "Nd",
  digit: "Nd",
  Letter_Number: "Nl",
  Other_Number: "No",
  Punctuation: "P",
  punct: "P",
  Connector_Punctuation: "Pc",
  Dash_Punctuation: "Pd",
  Open_Punctuation: "Ps",
  Close_Punctuation: "Pe",
  Initial_Punctuation: "Pi",
  Final_Punctuation: "Pf",
  Other_Punctuation: "Po",
  Symbol: "S",
  Math_Symbol: "Sm",
  Currency_Symbol: "Sc",
  Modifier_Symbol: "Sk",
  Other_Symbol: "So",
  Separator: "Z",
  Space_Separator: "Zs",
  Line_Separator: "Zl",
  Paragraph_Separator: "Zp",
  Other: "C",
  Control: "Cc",
  cntrl: "Cc",
  Format: "Cf",
  Surrogate: "Cs",
  Private_Use: "Co",
};

class Problem extends Error {}

/** Translates a pattern to RE2's syntax. Pass only the flags i and m to RE2, because the translation covers s and u. */
export function translatePattern(pattern: string, options: TranslationOptions): Translation {
  try {
    return { source: new Translator(pattern, options).run() };
  } catch (error) {
    if (error instanceof Problem) return { problem: error.message };
    throw error;
  }
}

class Translator {
  readonly #text: string;
  readonly #options: TranslationOptions;
  #at = 0;
  #out = "";

  constructor(text: string, options: TranslationOptions) {
    this.#text = text;
    this.#options = options;
  }

  run(): string {
    while (this.#at < this.#text.length) this.#out += this.#next();
    return this.#out;
  }

  #next(): string {
    const char = this.#take();
    switch (char) {
      case "\\":
        return this.#escape(false);
      case "[":
        return this.#class();
      case ".":
        return this.#options.dotAll ? ANY : NOT_LINE_END;
      case "(":
        return this.#group();
      case "{":
        return this.#quantifier();
      case "}":
      case "]":
        return `\\${char}`;
      case "^":
      case "$":
      case "|":
      case ")":
      case "*":
      case "+":
      case "?":
        return char;
      default:
        return literal(char);
    }
  }

  /** Reads one code point. Half of a surrogate pair is refused, because texts are read by code points. */
  #take(): string {
    const char = String.fromCodePoint(this.#text.codePointAt(this.#at) ?? 0);
    if (!char.isWellFormed()) throw new Problem("a lone surrogate");
    this.#at += char.length;
    return char;
  }

  /** Consumes the text at the current position that a sticky expression matches. */
  #match(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#text);
    if (found !== null) this.#at += found[0].length;
    return found;
  }

  #group(): string {
    if (this.#text[this.#at] !== "?") return "(";
    if (this.#match(/\?:/y)) return "(?:";
    // Writes an unnamed group, because names have no effect on a search.
    if (this.#match(/\?<[A-Za-z_$][\w$]*>/y)) return "(";
    throw new Problem("look-around, or a group of another kind than (...), (?:...) and (?<name>...)");
  }

  #quantifier(): string {
    const found = this.#match(/\d+(?:,\d*)?\}/y);
    return found === null ? "\\{" : `{${found[0]}`;
  }

  #class(): string {
    const negated = this.#match(/\^/y) !== null;
    if (this.#match(/\]/y)) return negated ? ANY : NOTHING;
    let inside = "";
    for (;;) {
      if (this.#at >= this.#text.length) throw new Problem("a class without end");
      const char = this.#take();
      if (char === "]") break;
      if (char === "\\") inside += this.#escape(true);
      else if (char === "-") inside += this.#hyphen(inside);
      else inside += literal(char);
    }
    return negated ? `[^${inside}]` : `[${inside}]`;
  }

  /**
   * Writes a hyphen in a class. At the ends of the class the hyphen is literal. Elsewhere it forms a range of
   * single characters.
   */
  #hyphen(inside: string): string {
    if (inside === "" || this.#text[this.#at] === "]") return "\\-";
    if (/\\[dDwWsS]$/.test(inside.slice(-2)) || /^\\[dDwWsSpP]/.test(this.#text.slice(this.#at))) {
      throw new Problem("a class as the end of a range");
    }
    return "-";
  }

  #escape(inClass: boolean): string {
    const char = this.#take();
    switch (char) {
      case "d":
      case "D":
      case "w":
      case "W":
        return `\\${char}`;
      case "s":
        return inClass ? SPACE : `[${SPACE}]`;
      case "S":
        return inClass ? NOT_SPACE : `[${NOT_SPACE}]`;
      case "b":
        return inClass ? code(8) : "\\b";
      case "B":
        if (inClass) throw new Problem("\\B in a class");
        return "\\B";
      case "t":
      case "n":
      case "f":
      case "r":
        return `\\${char}`;
      case "v":
        return code(11);
      case "0":
        if (this.#match(/\d/y)) throw new Problem("an octal escape");
        return code(0);
      case "c":
        return this.#control();
      case "x":
        return this.#hex(/([0-9a-fA-F]{2})/y);
      case "u":
        return this.#unicode();
      case "p":
      case "P":
        return this.#property(char);
    }
    if (/[1-9k]/.test(char)) throw new Problem("a back-reference");
    if (/[A-Za-z]/.test(char)) throw new Problem(`the escape \\${char}`);
    return literal(char);
  }

  #control(): string {
    const found = this.#match(/[A-Za-z]/y);
    if (found === null) throw new Problem("the escape \\c");
    return code(found[0].charCodeAt(0) % 32);
  }

  #hex(digits: RegExp): string {
    const found = this.#match(digits);
    if (found?.[1] === undefined) throw new Problem("an escape of a character without its digits");
    const point = Number.parseInt(found[1], 16);
    if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
      throw new Problem("an escape of no character");
    return code(point);
  }

  #unicode(): string {
    if (this.#options.unicode && this.#text[this.#at] === "{") return this.#hex(/\{([0-9a-fA-F]{1,6})\}/y);
    const pair = this.#match(/([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})/y);
    if (pair === null) return this.#hex(/([0-9a-fA-F]{4})/y);
    const [high, low] = [Number.parseInt(pair[1] ?? "", 16), Number.parseInt(pair[2] ?? "", 16)];
    return code(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
  }

  #property(kind: string): string {
    if (!this.#options.unicode) throw new Problem(`\\${kind} without the flag u`);
    const found = this.#match(/\{(?:(?:Script|sc|General_Category|gc)=)?([A-Za-z_]{1,40})\}/y);
    if (found?.[1] === undefined) throw new Problem(`a property \\${kind} of another form than {Name}`);
    return `\\${kind}{${CATEGORIES[found[1]] ?? found[1]}}`;
  }
}

function code(point: number): string {
  return `\\x{${point.toString(16)}}`;
}

/** Writes a literal character so that it is valid inside and outside of a class. */
function literal(char: string): string {
  return /[A-Za-z0-9_]/.test(char) ? char : code(char.codePointAt(0) ?? 0);
}
