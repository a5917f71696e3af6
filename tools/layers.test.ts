import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { checkLayers, importsOf, type Manifest } from "./layers.ts";
import { ROOMS, SEES_EVERYTHING } from "./rooms.ts";

const dependencies = (...names: string[]) => Object.fromEntries(names.map((name) => [name, "1.0.0"]));

// In two pieces, so that this file's own text passes the check.
const DYNAMIC = ["im", "port"].join("");

const MANIFESTS = new Map<string, Manifest>([
  ["", { name: "depute", devDependencies: dependencies("vitest", "ajv") }],
  ["packages/core", { name: "@depute/core", dependencies: dependencies("uuid") }],
  ["packages/store", { name: "@depute/store", dependencies: dependencies("@depute/core") }],
  ["packages/bus", { name: "@depute/bus", dependencies: dependencies("@depute/core") }],
  [
    "services/tasks",
    { name: "@depute/tasks", dependencies: dependencies("@depute/core", "@depute/store", "@depute/tokens") },
  ],
  [
    "services/tokens",
    { name: "@depute/tokens", dependencies: dependencies("@depute/core", "@depute/store") },
  ],
  ["gateway", { name: "@depute/gateway", dependencies: dependencies("@depute/core", "@depute/tasks") }],
  ["cli", { name: "@depute/cli", dependencies: dependencies("@depute/tasks", "@depute/gateway") }],
]);

const check = (file: string, source: string, manifests = MANIFESTS) =>
  checkLayers({ manifests, files: new Map([[file, source]]) });

test.each([
  ["packages/store/src/a.ts", 'import { x } from "@depute/core";'],
  ["packages/store/src/a.ts", 'import { x } from "./sqlite/b.ts";'],
  ["packages/store/src/sqlite/b.ts", 'import type { X } from "../a.ts";'],
  ["packages/store/src/a.ts", 'import { DatabaseSync } from "node:sqlite";'],
  ["packages/store/src/a.ts", 'import { own } from "@depute/store";'],
  ["packages/store/src/a.test.ts", 'import { test } from "vitest";'],
  ["packages/store/src/testing/suite.ts", 'import { test } from "vitest";'],
  ["packages/store/src/a.ts", '// import { x } from "@depute/bus";\n * import "@depute/bus"'],
  ["packages/store/src/a.ts", 'export const name = "@depute/bus";'],
  ["services/tasks/src/index.ts", 'import { x } from "@depute/store/testing";'],
  ["services/tasks/src/core/rules/a.ts", 'import { x } from "@depute/core";\nimport { y } from "./b.ts";'],
  ["services/tasks/src/core/rules/a.ts", 'import { y } from "../words.ts";'],
  ["services/tasks/src/core/rules/a.test.ts", 'import { readFileSync } from "node:fs";'],
  ["gateway/src/wires/nekte/a.ts", 'import { x } from "../../http.ts";\nimport { y } from "./b.ts";'],
  ["gateway/src/server.ts", 'import { x } from "./wires/nekte/a.ts";'],
  ["cli/src/main.ts", 'import { x } from "@depute/tasks";\nimport { y } from "@depute/gateway";'],
  ["tools/a.ts", 'import { x } from "@depute/tasks";\nimport Ajv from "ajv";'],
  ["bench/a/b.bench.ts", 'import { x } from "@depute/tasks";\nimport { v4 } from "uuid";'],
  ["vitest.config.ts", 'import { defineConfig } from "vitest/config";\nimport x from "./tools/x.ts";'],
])("%s may: %s", (file, source) => {
  expect(check(file, source)).toEqual([]);
});

test.each([
  [
    "packages/core/src/a.ts",
    'import { x } from "@depute/store";',
    "packages/core may not import packages/store",
  ],
  ["packages/store/src/a.ts", 'export * from "@depute/bus";', "packages/store may not import packages/bus"],
  [
    "packages/store/src/a.ts",
    `const x = await ${DYNAMIC}("@depute/bus");`,
    "packages/store may not import packages/bus",
  ],
  ["packages/store/src/a.test.ts", 'import "@depute/tasks";', "packages/store may not import services/tasks"],
  [
    "services/tasks/src/a.ts",
    'import { x } from "@depute/tokens";',
    "services/tasks may not import services/tokens",
  ],
  [
    "services/tasks/src/a.ts",
    'import { x } from "@depute/gateway";',
    "services/tasks may not import gateway",
  ],
  ["gateway/src/a.ts", 'import type { X } from "@depute/tasks";', "gateway may not import services/tasks"],
  [
    "packages/store/src/a.ts",
    'import { x } from "../../core/src/index.ts";',
    "../../core/src/index.ts leaves the workspace; import it by its name",
  ],
  [
    "cli/src/a.ts",
    'import { x } from "../../tools/x.ts";',
    "../../tools/x.ts leaves the workspace; import it by its name",
  ],
  [
    "tools/a.ts",
    'import { x } from "../cli/src/x.ts";',
    "../cli/src/x.ts leaves the workspace; import it by its name",
  ],
  ["tools/a.ts", 'import { x } from "../../x.ts";', "../../x.ts leaves the workspace; import it by its name"],
  [
    "services/tasks/src/core/rules/a.ts",
    'import { x } from "node:crypto";',
    "rules are pure: node:crypto does I/O",
  ],
  [
    "services/tasks/src/core/rules/deep/a.ts",
    'import fs from "fs/promises";',
    "rules are pure: fs/promises does I/O",
  ],
  [
    "services/tasks/src/core/rules/a.ts",
    'import { x } from "@depute/store";',
    "rules are pure: @depute/store does I/O",
  ],
  [
    "services/tasks/rules/a.ts",
    'import "@connectrpc/connect-node";',
    "rules are pure: @connectrpc/connect-node does I/O",
  ],
  [
    "services/tasks/src/core/rules/a.ts",
    'import { x } from "../store/tasks.ts";',
    "rules are pure: store/ does I/O",
  ],
  [
    "services/tasks/src/core/rules/a.ts",
    'import { x } from "../handlers/a.ts";',
    "rules are pure: handlers/ does I/O",
  ],
  [
    "gateway/src/wires/nekte/a.ts",
    'import { x } from "../asp/a.ts";',
    "wires do not import one another: nekte imports asp",
  ],
  [
    "gateway/wires/nekte/a.ts",
    'import { x } from "../asp/a.ts";',
    "wires do not import one another: nekte imports asp",
  ],
  [
    "packages/store/src/a.ts",
    'import { v7 } from "uuid";',
    "uuid is not among the dependencies of packages/store/package.json",
  ],
  [
    "packages/store/src/a.ts",
    'import { test } from "vitest";',
    "vitest is not among the dependencies of packages/store/package.json",
  ],
  [
    "packages/store/src/a.test.ts",
    'import "@x/y/z";',
    "@x/y is not among the dependencies of packages/store/package.json",
  ],
  ["tools/a.ts", 'import "left-pad";', "left-pad is not among the dependencies of package.json"],
])("%s may not: %s", (file, source, rule) => {
  expect(check(file, source)).toEqual([{ file, line: 1, rule }]);
});

test("a workspace without a room is refused", () => {
  const manifests = new Map([...MANIFESTS, ["packages/new", { name: "@depute/new" }] as const]);
  const rule = "every workspace has its room in tools/rooms.ts and docs/architecture.md";
  expect(check("a.ts", "", manifests)).toEqual([{ file: "packages/new/package.json", line: 1, rule }]);
});

test("imports are found in every form, at the line of the name", () => {
  const source = [
    'import a from "a";',
    'import "b";',
    "import {",
    "  type C,",
    "  c as d,",
    '} from "c";',
    'import * as e from "e";',
    'import type { F } from "f";',
    'import g, { h } from "g";',
    'export * from "h";',
    'export * as i from "i";',
    "export {",
    "  k,",
    '} from "k";',
    'export type { L } from "l";',
    `const m = await ${DYNAMIC}("m");`,
    `  // ${DYNAMIC}("n")`,
    `type P = ${DYNAMIC}("p").P;`,
  ].join("\n");
  const found = importsOf(source).sort((a, b) => a.line - b.line);
  expect(found.map(({ specifier, line }) => `${specifier} ${line}`)).toEqual([
    "a 1",
    "b 2",
    "c 6",
    "e 7",
    "f 8",
    "g 9",
    "h 10",
    "i 11",
    "k 14",
    "l 15",
    "m 16",
    "p 18",
  ]);
});

test("the rooms are those of docs/architecture.md", () => {
  const page = readFileSync(new URL("../docs/architecture.md", import.meta.url), "utf8");
  const section = /^## Rooms$(.*?)^## /ms.exec(page)?.[1] ?? "";
  const rooms = [...section.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1]);
  const seesAll = SEES_EVERYTHING.map((folder) => `${folder}/`);
  expect(rooms).toEqual(["proto/", ...Object.keys(ROOMS), ...seesAll]);
});
