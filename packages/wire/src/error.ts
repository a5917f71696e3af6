/** The kind of fault in a document. */
export type WireReason =
  /** The text is not JSON. */
  | "not_json"
  /** The bytes are not UTF-8, or begin with a byte order mark. */
  | "not_utf8"
  /** The text is longer than allowed. */
  | "too_large"
  /** Objects and arrays are nested deeper than allowed. */
  | "too_deep"
  /** The text contains more values and names than allowed. */
  | "too_many_values"
  /** An object has two members with the same name. */
  | "duplicate_member"
  /** A string contains half of a surrogate pair, which has no UTF-8 form. */
  | "lone_surrogate"
  /** A number is not finite, is beyond the range of its field, or has a fraction although its field is an integer. */
  | "number_range"
  /** The JSON kind of the value is not one that the member accepts. */
  | "wrong_type"
  /** A string is not one of the words that the member accepts. */
  | "unknown_word"
  /** The document has a member that the message does not define. */
  | "unknown_member"
  /** A required member is absent. */
  | "missing_member"
  /** Two members that exclude each other are both present. */
  | "conflict"
  /** The value breaks a rule of the contract. `rule` contains the id of the rule. */
  | "broken_rule";

/** The refusal of a document. The path and the message each quote at most 64 characters of the input. */
export interface WireError {
  /**
   * The location of the fault as a JSON pointer (RFC 6901). The empty pointer means that the whole document is at
   * fault.
   */
  path: string;
  reason: WireReason;
  /** A description of the fault. */
  message: string;
  /**
   * The id of the broken rule, for example `string.pattern`. Set for broken_rule, and for missing_member if a rule
   * requires the member.
   */
  rule?: string;
  /** The position in the text, in characters from 0. Set for not_json. */
  position?: number;
  /** The limit in bytes, levels or values. Set for too_large, too_deep and too_many_values. */
  max?: number;
}

/** Maximum number of input characters that an error quotes, separately in its path and in its message. */
export const MAX_ECHO = 64;

/**
 * A step of the path to a fault: a member name of the contract, an index in an array, or (`sent`) a member name from
 * the document.
 */
export type Step = string | number | { sent: string };

/**
 * The fault that the decoder throws. The decoder adds the steps of the path while it leaves the nested values, so
 * successful decoding costs nothing.
 */
export class Fault extends Error {
  readonly reason: WireReason;
  readonly path: Step[] = [];

  constructor(reason: WireReason, message: string) {
    super(message);
    this.reason = reason;
  }

  /** Adds a step in front of the fault's path, and returns the same fault. */
  within(step: Step): this {
    this.path.unshift(step);
    return this;
  }

  /** Converts the fault to a WireError. `maxDepth` is the nesting limit that applied. */
  toError(maxDepth: number): WireError {
    const error: WireError = { path: pointer(this.path), reason: this.reason, message: this.message };
    return this.reason === "too_deep" ? { ...error, max: maxDepth } : error;
  }
}

/** Adds a step in front of a fault's path, and returns the fault. Returns any other error unchanged. */
export function within(thrown: unknown, step: Step): unknown {
  return thrown instanceof Fault ? thrown.within(step) : thrown;
}

/**
 * Returns the JSON pointer of a path. If the names from the document exceed MAX_ECHO characters in total, the pointer
 * ends there with an ellipsis.
 */
export function pointer(path: readonly Step[]): string {
  let remainingChars = MAX_ECHO;
  let text = "";
  for (const step of path) {
    if (typeof step !== "object") {
      text += `/${escapeStep(String(step))}`;
      continue;
    }
    const cut = clip(step.sent, remainingChars);
    remainingChars -= cut.length;
    text += `/${escapeStep(cut)}`;
    if (cut.length < step.sent.length) return `${text}…`;
  }
  return text;
}

/** Quotes a text from the input, shortened to MAX_ECHO characters. */
export function quote(sent: string): string {
  const cut = clip(sent, MAX_ECHO);
  return JSON.stringify(cut.length < sent.length ? `${cut}…` : cut);
}

function clip(text: string, length: number): string {
  return text.length <= length ? text : text.slice(0, length).toWellFormed();
}

function escapeStep(step: string): string {
  return step.replaceAll("~", "~0").replaceAll("/", "~1");
}
