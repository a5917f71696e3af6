/** Part of `npm run lint`: prints a line for each import that breaks a rule of docs/internals/layout.md. */
import { globSync, readFileSync } from "node:fs";
import { EXCEPTIONS } from "./layer-exceptions.ts";
import { checkLayers } from "./layers.ts";
import { roomless, SEES_EVERYTHING } from "./rooms.ts";

const root = JSON.parse(readFileSync("package.json", "utf8")) as { workspaces: string[] };
const workspaces = globSync(root.workspaces.map((pattern) => `${pattern}/package.json`));
const errors = roomless(workspaces).map(
  (folder) => `${folder}: every workspace has its room in tools/rooms.ts and docs/internals/layout.md`,
);
const folders = [
  "packages",
  "services",
  "gateway",
  "cli",
  "console",
  "examples",
  "tools",
  ...SEES_EVERYTHING,
];
const { files, violations, unused } = await checkLayers(process.cwd(), folders, EXCEPTIONS);
for (const { rule, from, to, comment, cycle } of violations) {
  const way = cycle.length > 1 ? ` (${[from, ...cycle].join(" > ")})` : "";
  errors.push(`${from} imports ${to}: ${comment} [${rule}]${way}`);
}
for (const { rule, from, to } of unused) {
  errors.push(
    `tools/layer-exceptions.ts: no violation of ${rule} from ${from} to ${to}; remove the exception`,
  );
}
for (const error of errors) console.error(error);
if (errors.length > 0) process.exitCode = 1;
else console.log(`layers: ${files} files keep to their rooms, with ${EXCEPTIONS.length} exceptions`);
