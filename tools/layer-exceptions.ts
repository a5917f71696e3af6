import type { Exception } from "./layers.ts";

const TASKS = "services/tasks/src";

const PORT = "the port of the core does not offer this yet";

/** What each module of services/tasks imports beside the port of the core. */
const BESIDE_THE_PORT: Readonly<Record<string, readonly string[]>> = {
  executions: ["core/creation", "core/engine", "core/handlers", "core/rules", "core/store"],
  messages: [
    "core/creation",
    "core/dependencies.ts",
    "core/engine",
    "core/handlers",
    "core/rules",
    "core/store",
    "reviews",
  ],
  push: ["core/engine", "core/handlers", "core/queue", "core/rules", "core/store"],
  reviews: ["core/dependencies.ts", "core/engine", "core/rules", "core/store"],
  sessions: ["core/creation", "core/engine", "core/handlers", "core/rules", "core/store"],
};

/** What the core imports of the modules. */
const UPWARDS = ["push", "reviews"];

/** Circles of files, by folder. */
const FILE_CYCLES: Readonly<Record<string, string>> = {
  "packages/dct/src/fast": "the quick reader and the thorough one call each other",
  "packages/dct/src/revocation.ts": "the rule of revocation is part of the verification of a chain",
  "packages/wire/src": "the codec of a message is made of codecs of fields, and a field may hold a message",
  [`${TASKS}/messages`]: "a decision of a message may send other messages",
  [`${TASKS}/push`]: PORT,
  [`${TASKS}/sessions`]: PORT,
};

/** Circles of folders, by folder. */
const FOLDER_CYCLES: Readonly<Record<string, string>> = {
  gateway: "src/ composes the wires, and holds what they share",
  [TASKS]: PORT,
};

/** The known violations. The list only shrinks: an exception without a violation fails the check. */
export const EXCEPTIONS: readonly Exception[] = [
  ...Object.entries(BESIDE_THE_PORT).flatMap(([module, folders]) =>
    folders.map((to) => ({
      rule: "modules-by-the-port",
      from: `${TASKS}/${module}/`,
      to: `${TASKS}/${to}`,
      reason: PORT,
    })),
  ),
  ...UPWARDS.map((to) => ({
    rule: "core-without-modules",
    from: `${TASKS}/core/`,
    to: `${TASKS}/${to}/`,
    reason: PORT,
  })),
  ...circles("file-cycle", FILE_CYCLES),
  ...circles("folder-cycle", FOLDER_CYCLES),
];

function circles(rule: string, reasons: Readonly<Record<string, string>>): Exception[] {
  return Object.entries(reasons).map(([from, reason]) => ({ rule, from, to: "", reason }));
}
