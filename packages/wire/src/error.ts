/** What kind of fault a document has. */
export type WireReason =
  /** The text is not JSON. */
  | "not_json"
  /** The bytes are not UTF-8, or begin with a byte order mark. */
  | "not_utf8"
  /** The text is longer than allowed. */
  | "too_large"
  /** Objects and arrays are nested deeper than allowed. */
  | "too_deep"
  /** The text holds more values and names than allowed. */
  | "too_many_values"
  /** Two members of one object have one name. */
  | "duplicate_member"
  /** A string holds half of a surrogate pair, which has no UTF-8 form. */
  | "lone_surrogate"
  /** A number is not finite, not an integer where one is needed, or beyond what its field holds. */
  | "number_range"
  /** The value is of another JSON kind than its member takes. */
  | "wrong_type"
  /** A string is not one of the words that its member takes. */
  | "unknown_word"
  /** The message has no such member. */
  | "unknown_member"
  /** A member that is always there is not. */
  | "missing_member"
  /** Two members that exclude each other are both there. */
  | "conflict"
  /** The value breaks a rule of the contract; `rule` names it. */
  | "broken_rule";

/** Why a document was refused. What a stranger sent is echoed by at most 64 characters in all of path and message. */
export interface WireError {
  /** Where, as a JSON pointer (RFC 6901); the empty pointer is the document itself. */
  path: string;
  reason: WireReason;
  /** What is wrong, for a person. */
  message: string;
  /** The id of the broken rule, e.g. `string.pattern`; with reason broken_rule and, for a rule's sake, missing_member. */
  rule?: string;
  /** Where in the text, in characters from 0; with reason not_json. */
  position?: number;
  /** The limit in bytes or levels; with reasons too_large, too_deep and too_many_values. */
  max?: number;
}

/** The most characters of what was sent that an error repeats, in its path and in its message each. */
export const MAX_ECHO = 64;

/** A step of a path: a name of the contract, an index, or a name that the document chose. */
export type Step = string | number | { sent: string };

/** A fault on its way out of the decoder. It gathers its path while the stack unwinds, so that success costs nothing. */
export class Fault extends Error {
  readonly reason: WireReason;
  readonly path: Step[] = [];

  constructor(reason: WireReason, message: string) {
    super(message);
    this.reason = reason;
  }

  /** The same fault, seen from one level further out. */
  within(step: Step): this {
    this.path.unshift(step);
    return this;
  }

  /** What the caller gets; `maxDepth` is the limit of nesting that held. */
  toError(maxDepth: number): WireError {
    const error: WireError = { path: pointer(this.path), reason: this.reason, message: this.message };
    return this.reason === "too_deep" ? { ...error, max: maxDepth } : error;
  }
}

/** Adds a step to a fault's path; anything else that was thrown passes as it is. */
export function within(thrown: unknown, step: Step): unknown {
  return thrown instanceof Fault ? thrown.within(step) : thrown;
}

/** The JSON pointer of a path. Names that the document chose are cut when they exceed the echo together. */
export function pointer(path: readonly Step[]): string {
  let left = MAX_ECHO;
  let text = "";
  for (const step of path) {
    if (typeof step !== "object") {
      text += `/${escapeStep(String(step))}`;
      continue;
    }
    const cut = clip(step.sent, left);
    left -= cut.length;
    text += `/${escapeStep(cut)}`;
    if (cut.length < step.sent.length) return `${text}…`;
  }
  return text;
}

/** What was sent, in quotes and cut to the echo. */
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
