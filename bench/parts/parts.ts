/** A part of the platform that Depute implements itself, and the library code that replaces it for the comparison. */
export interface Part {
  /** The call on which the part is measured. */
  readonly call: keyof typeof CALLS;
  /** The part's file, from the project's root. The file of the same name in libraries/ replaces it. */
  readonly file: string;
}

/** The calls on which parts are measured. Each is a full call over a socket. */
export const CALLS = {
  CreateTask: "CreateTask with limits",
  task: "a task from its creation to its completion",
  GetAgent: "GetAgent",
  VerifyToken: "VerifyToken of a new token with a proof",
  CheckOutput: "CheckOutput of a 4 KB output",
} as const;

const RULES = "packages/core/src/quick-rules.ts";
const FAST_PATH = "packages/service/src/fast/fast-path.ts";

export const PARTS: Readonly<Record<string, Part>> = {
  "quick-rules": { call: "CreateTask", file: RULES },
  "quick-rules, GetAgent": { call: "GetAgent", file: RULES },
  "quick-rules, task": { call: "task", file: RULES },
  "quick-rules, VerifyToken": { call: "VerifyToken", file: RULES },
  "quick-schema": { call: "CheckOutput", file: "packages/wire/src/json-schema/quick-schema.ts" },
  "dct/fast/scan": { call: "VerifyToken", file: "packages/dct/src/fast/read.ts" },
  "dct/fast/words": { call: "VerifyToken", file: "packages/dct/src/fast/words.ts" },
  "dct/fast/memo": { call: "VerifyToken", file: "packages/dct/src/fast/memo.ts" },
  "service/fast": { call: "GetAgent", file: FAST_PATH },
  "service/fast, CreateTask": { call: "CreateTask", file: FAST_PATH },
};
