/** A part of the platform that Depute implements itself, and the library code that replaces it for the comparison. */
export interface Part {
  /** The call on which the part is measured. */
  readonly call: keyof typeof CALLS;
  /** The sources that replace the part's sources, by the path of the replaced file. */
  readonly files: Readonly<Record<string, string>>;
}

/** The calls on which parts are measured. Each is a full call over a socket. */
export const CALLS = {
  CreateTask: "CreateTask with limits",
  task: "a task from its creation to its completion",
  GetAgent: "GetAgent",
  VerifyToken: "VerifyToken with a proof",
  CheckOutput: "CheckOutput of a 4 KB output",
} as const;

const NO_QUICK_RULES = "export const isSureToKeepRules = () => false;";
const PLAIN_WORDS = `
  import { parsePattern } from "../glob.ts";
  import { parsePrincipal } from "../principal.ts";
  export { parsePrincipal as rememberedKey, parsePattern as readRemembered };
  export function rememberedPattern(text, namespace) {
    const pattern = /^[\\x20-\\x7e]*$/.test(text) ? parsePattern(text, namespace) : { problem: "" };
    return "problem" in pattern ? undefined : pattern;
  }`;
const NO_MEMO = `
  export class Memo { get() {} set() {} }
  export const detached = (text) => text;`;
const NO_FAST_PATH = "export const createFastPath = () => () => false;";

const RULES = "packages/core/src/quick-rules.ts";
const FAST_PATH = "packages/service/src/fast/fast-path.ts";

export const PARTS: Readonly<Record<string, Part>> = {
  "quick-rules": { call: "CreateTask", files: { [RULES]: NO_QUICK_RULES } },
  "quick-rules, GetAgent": { call: "GetAgent", files: { [RULES]: NO_QUICK_RULES } },
  "quick-rules, task": { call: "task", files: { [RULES]: NO_QUICK_RULES } },
  "quick-rules, VerifyToken": { call: "VerifyToken", files: { [RULES]: NO_QUICK_RULES } },
  "quick-schema": {
    call: "CheckOutput",
    files: {
      "packages/wire/src/json-schema/quick-schema.ts": `
        export const readQuickSchema = () => undefined;
        export const fitsQuickly = () => false;
        export const valueFitsQuickly = () => false;`,
    },
  },
  "dct/fast/scan": {
    call: "VerifyToken",
    files: { "packages/dct/src/fast/read.ts": "export const readQuickly = () => undefined;" },
  },
  "dct/fast/words": { call: "VerifyToken", files: { "packages/dct/src/fast/words.ts": PLAIN_WORDS } },
  "dct/fast/memo": { call: "VerifyToken", files: { "packages/dct/src/fast/memo.ts": NO_MEMO } },
  "service/fast": { call: "GetAgent", files: { [FAST_PATH]: NO_FAST_PATH } },
  "service/fast, CreateTask": { call: "CreateTask", files: { [FAST_PATH]: NO_FAST_PATH } },
};
