import type { Exception } from "./layers.ts";

const TASKS = "services/tasks/src";

/** Circles of files, by folder. */
const FILE_CYCLES: Readonly<Record<string, string>> = {
  "packages/dct/src/fast": "the quick reader and the thorough one call each other",
  "packages/dct/src/revocation.ts": "the rule of revocation is part of the verification of a chain",
  "packages/wire/src": "the codec of a message is made of codecs of fields, and a field may hold a message",
  [`${TASKS}/messages`]: "a decision of a message may send other messages",
};

/** Circles of folders, by folder. */
const FOLDER_CYCLES: Readonly<Record<string, string>> = {
  gateway: "src/ composes the wires, and holds what they share",
  [`${TASKS}/messages`]: "the work of a message shares the context of its handlers",
};

/** The known violations. The list only shrinks: an exception without a violation fails the check. */
export const EXCEPTIONS: readonly Exception[] = [
  ...circles("file-cycle", FILE_CYCLES),
  ...circles("folder-cycle", FOLDER_CYCLES),
];

function circles(rule: string, reasons: Readonly<Record<string, string>>): Exception[] {
  return Object.entries(reasons).map(([from, reason]) => ({ rule, from, to: "", reason }));
}
