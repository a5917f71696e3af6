import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EXCEPTIONS } from "./layer-exceptions.ts";
import { checkLayers, type Layers } from "./layers.ts";
import { MODULES, ROOMS, roomless, SEES_EVERYTHING } from "./rooms.ts";

/** Sources that break no rule, by path. */
const KEEPS: Readonly<Record<string, string>> = {
  "packages/core/src/index.ts": 'export * from "./words.ts";\nexport { v7 } from "uuid";',
  "packages/core/src/words.ts": "export const x = 1;",
  "packages/store/src/index.ts":
    'export { x } from "./sqlite/open.ts";\nexport { x as y } from "@depute/core";',
  "packages/store/src/sqlite/open.ts": 'import "node:sqlite";\nexport { x } from "../names.ts";',
  "packages/store/src/names.ts": "export const x = 1;",
  "packages/store/src/names.test.ts": 'import "vitest";\nimport { readFileSync } from "node:fs";',
  "packages/store/src/testing/suite.ts": 'import "vitest";\nimport { x } from "../index.ts";',
  "packages/store/src/text.ts":
    '// import { x } from "@depute/bus";\nexport const name = \'import "@depute/bus"\';',
  "packages/bus/src/index.ts": 'import { x } from "@depute/core";',
  "services/tasks/src/index.ts": 'import "./core/index.ts";\nimport "./messages/index.ts";',
  "services/tasks/src/core/index.ts": 'import "./rules/lease.ts";\nimport { x } from "@depute/store";',
  "services/tasks/src/core/rules/lease.ts": 'import { x } from "@depute/core";\nimport "./retry.ts";',
  "services/tasks/src/core/rules/retry.ts": "export {};",
  "services/tasks/src/core/rules/retry.test.ts": 'import { readFileSync } from "node:fs";',
  "services/tasks/src/core/store/rows.ts": "export {};",
  "services/tasks/src/core/handlers/create.ts": "export {};",
  "services/tasks/src/messages/index.ts": 'import "../core/index.ts";\nimport "./rules/permit.ts";',
  "services/tasks/src/messages/rules/permit.ts": "export {};",
  "services/tasks/src/messages/send.test.ts": 'import "../core/rules/lease.ts";',
  "services/tasks/src/sessions/index.ts": "export {};",
  "services/tokens/src/index.ts": "export {};",
  "gateway/src/index.ts": 'import "../wires/nekte/index.ts";',
  "gateway/wires/nekte/index.ts": 'import "./methods.ts";',
  "gateway/wires/nekte/methods.ts": "export {};",
  "gateway/wires/asp/index.ts": "export {};",
  "cli/src/main.ts": 'import "@depute/tasks";\nimport "@depute/gateway";',
  "examples/team/main.ts": 'import "@depute/core";',
  "tools/a.ts": 'import "@depute/tasks";\nimport "vitest";\nimport "../vitest.config.ts";',
  "tests/a.test.ts": 'import "@depute/tasks";\nimport "uuid";\nimport "../examples/team/main.ts";',
  "vitest.config.ts": 'import "vitest";',
};

/** Violations: a file, its source, and the rules that refuse it. */
const BREAKS: readonly [file: string, source: string, rules: string][] = [
  ["packages/core/src/a.ts", 'import { x } from "@depute/store";', "room:packages/core"],
  ["packages/store/src/a.ts", 'export * from "@depute/bus";', "room:packages/store"],
  ["packages/store/src/b.ts", 'import type { X } from "@depute/bus";', "room:packages/store"],
  ["packages/store/src/c.ts", 'const x = await import("@depute/bus");', "room:packages/store"],
  ["packages/store/src/d.test.ts", 'import "@depute/tasks";', "room:packages/store"],
  ["services/tasks/src/a.ts", 'import "@depute/tokens";', "room:services/*"],
  ["services/tasks/src/b.ts", 'import "@depute/gateway";', "room:services/*"],
  ["gateway/src/a.ts", 'import type { X } from "@depute/tasks";', "room:gateway"],
  ["examples/team/a.ts", 'import "@depute/gateway";', "room:examples/*"],
  ["packages/store/src/e.ts", 'import "../../core/src/index.ts";', "leaves-the-workspace"],
  ["cli/src/a.ts", 'import "../../tools/a.ts";', "leaves-the-workspace"],
  ["tools/b.ts", 'import "../cli/src/main.ts";', "enters-a-workspace"],
  ["tools/c.ts", 'import "./none.ts";', "unresolved"],
  ["tools/d.ts", 'import "left-pad";', "undeclared"],
  ["packages/bus/src/a.test.ts", 'import "left-pad";', "undeclared"],
  ["services/tasks/src/core/rules/a.ts", 'import "node:crypto";', "rules-without-node"],
  ["services/tasks/src/core/rules/deep/b.ts", 'import "fs/promises";', "rules-without-node"],
  ["services/tasks/src/core/rules/c.ts", 'import "@depute/store";', "rules-without-io"],
  ["services/tasks/src/core/rules/d.ts", 'import "@grpc/grpc-js";', "rules-without-io"],
  ["services/tasks/src/core/rules/e.ts", 'import "../store/rows.ts";', "rules-beside-io"],
  ["services/tasks/src/core/rules/f.ts", 'import "../handlers/create.ts";', "rules-beside-io"],
  ["gateway/wires/nekte/a.ts", 'import "../asp/index.ts";', "wires-apart"],
  ["services/tasks/src/core/a.ts", 'import "../sessions/index.ts";', "core-without-modules"],
  ["services/tasks/src/messages/a.ts", 'import "../core/rules/lease.ts";', "modules-by-the-port"],
  ["services/tasks/src/messages/b.ts", 'import "../sessions/index.ts";', "modules-by-the-port"],
  ["services/tasks/src/messages/c.ts", 'import "../index.ts";', "modules-by-the-port"],
];

/** Import cycles: files with their sources. */
const CIRCLES: Readonly<Record<string, string>> = {
  "packages/bus/src/x.ts": 'import "./y.ts";',
  "packages/bus/src/y.ts": 'import type { X } from "./x.ts";',
  "packages/store/src/left/a.ts": 'import "../right/b.ts";',
  "packages/store/src/right/b.ts": "export {};",
  "packages/store/src/right/c.ts": 'import "../left/d.ts";',
  "packages/store/src/left/d.ts": "export {};",
};

const FOLDERS = ["packages", "services", "gateway", "cli", "examples", "tools", "tests"];

const roots: string[] = [];
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true });
});

/** Creates a repository with these sources, and with the packages that they import. Returns its folder. */
function repository(sources: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "layers-"));
  roots.push(root);
  const putFile = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const manifest = (folder: string, fields: object) =>
    putFile(join(folder, "package.json"), JSON.stringify({ type: "module", ...fields }));
  const workspaces = ["packages/*", "services/*", "gateway", "cli", "examples/*"];
  manifest(".", { name: "depute", workspaces, devDependencies: { vitest: "1.0.0" } });
  for (const name of ["vitest", "uuid", "left-pad", "@grpc/grpc-js"]) {
    manifest(`node_modules/${name}`, { name, exports: "./index.js" });
    putFile(`node_modules/${name}/index.js`, "");
  }
  mkdirSync(join(root, "node_modules/@depute"));
  for (const folder of ["packages/core", "packages/store", "packages/bus", "services/tasks"]) {
    const name = `@depute/${folder.split("/").at(-1)}`;
    const dependencies = { uuid: "1.0.0", "@grpc/grpc-js": "1.0.0" };
    manifest(folder, { name, exports: { ".": "./src/index.ts" }, dependencies });
    symlinkSync(join(root, folder), join(root, "node_modules", name));
  }
  for (const folder of ["services/tokens", "gateway"]) {
    const name = `@depute/${folder.split("/").at(-1)}`;
    manifest(folder, { name, exports: { ".": "./src/index.ts" } });
    symlinkSync(join(root, folder), join(root, "node_modules", name));
  }
  manifest("cli", { name: "depute" });
  for (const [path, text] of Object.entries(sources)) putFile(path, text);
  return root;
}

test("sources that follow the rules pass", async () => {
  const { violations } = await checkLayers(repository(KEEPS), FOLDERS);
  expect(violations.filter(({ rule }) => rule !== "folder-cycle")).toEqual([]);
});

describe("one violation is found each", () => {
  let layers: Layers;
  beforeAll(async () => {
    const sources = Object.fromEntries(BREAKS.map(([file, source]) => [file, source]));
    layers = await checkLayers(repository({ ...KEEPS, ...sources }), FOLDERS);
  });

  test.each(BREAKS)("%s may not: %s", (file, _, rule) => {
    const broken = layers.violations.filter(({ from }) => from === file);
    expect(broken.map(({ rule }) => rule)).toEqual([rule]);
    expect(broken[0]?.comment).not.toBe("");
  });
});

test("a cycle of files is found, also by types alone, and a cycle of folders without a cycle of files", async () => {
  const { violations } = await checkLayers(repository({ ...KEEPS, ...CIRCLES }), FOLDERS);
  const found = violations.map(({ rule, from, to }) => `${rule} ${from} ${to}`).sort();
  expect(found).toEqual([
    "file-cycle packages/bus/src/x.ts packages/bus/src/y.ts",
    "folder-cycle packages/store/src/left packages/store/src/right",
    "folder-cycle packages/store/src/right packages/store/src/left",
  ]);
});

test("an exception hides its violations alone, and one without violations is reported", async () => {
  const circle = { rule: "file-cycle", from: "packages/bus/src/", to: "", reason: "known" };
  const stale = { rule: "wires-apart", from: "gateway/", to: "", reason: "was mended" };
  const layers = await checkLayers(repository({ ...KEEPS, ...CIRCLES }), FOLDERS, [circle, stale]);
  expect(layers.violations.map(({ rule }) => rule)).toEqual(["folder-cycle", "folder-cycle"]);
  expect(layers.unused).toEqual([stale]);
});

test("every exception has its reason", () => {
  expect(EXCEPTIONS.filter(({ reason }) => reason.length < 10)).toEqual([]);
});

test("a workspace without a room is refused", () => {
  expect(roomless(["packages/new/package.json", "gateway/package.json"])).toEqual(["packages/new"]);
});

test("the rules are those of docs/internals/layout.md", () => {
  const page = readFileSync(new URL("../docs/internals/layout.md", import.meta.url), "utf8");
  const section = /^## Rooms$(.*)/ms.exec(page)?.[1] ?? "";
  const rooms = [...section.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1]);
  const seesAll = SEES_EVERYTHING.map((folder) => `${folder}/`);
  expect(rooms).toEqual(["proto/", ...Object.keys(ROOMS), ...seesAll]);
  expect(MODULES.map(({ folder }) => folder)).toEqual(["services/tasks/src"]);
});
