import { expect, test } from "vitest";
import type { List } from "./methods.ts";
import type { CallRule, ToolMap } from "./tool-map.ts";
import { visible } from "./visible.ts";

const rule = (resource: CallRule["resource"]): CallRule => {
  return { namespace: "docs", action: "read", resource, cost: { most: 0 }, checkArguments: true, limits: {} };
};
const map: ToolMap = {
  tools: new Map([
    ["fixed", rule({ kind: "fixed", value: "reports/2026" })],
    ["every", rule({ kind: "fixed", value: "*" })],
    ["argued", rule({ kind: "argument", pointers: ["/path"], form: "path" })],
  ]),
  methods: new Map([
    ["resources/read", rule({ kind: "argument", pointers: ["/uri"], form: "uri" })],
    ["prompts/get", rule({ kind: "argument", pointers: ["/name"], form: "text" })],
  ]),
  passed: new Set(),
};
const TOOLS: List = { member: "tools", usedBy: "tools/call", name: "name" };
const RESOURCES: List = { member: "resources", usedBy: "resources/read", name: "uri" };
const granted = (resource: string) => [{ namespace: "docs", action: "read", resource }];
const names = (list: readonly unknown[]) => list.map((entry) => Object.values(entry as object)[0]);

const tools = ["fixed", "every", "argued", "unmapped"].map((name) => ({ name }));
test.each<[string, string[]]>([
  ["*", ["fixed", "every", "argued"]],
  ["**", ["fixed", "every", "argued"]],
  ["reports/2026", ["fixed", "argued"]],
  ["reports/*", ["fixed", "argued"]],
  ["reports/**", ["fixed", "argued"]],
  // A wildcard matches only whole segments, so `20*` matches nothing.
  ["reports/20*", ["argued"]],
  ["rep*/2026", ["argued"]],
  ["report", ["argued"]],
])("a token for %s shows %j of the tools", (resource, expectedNames) => {
  expect(names(visible(tools, TOOLS, map, granted(resource)))).toEqual(expectedNames);
});

test.each<[string, string[]]>([
  ["/docs/**", ["file:///docs/plan", "file:///docs"]],
  ["/docs/*", ["file:///docs/plan"]],
  ["/docs-secret/**", ["file:///docs-secret/key"]],
  ["note/**", ["note://a/b"]],
])("a token for %s shows %j of the resources", (resource, expectedNames) => {
  const uris = [
    "file:///docs/plan",
    "file:///docs",
    "file:///docs-secret/key",
    "note://a/b",
    "file:///a/../b",
    "x",
  ];
  expect(
    names(
      visible(
        uris.map((uri) => ({ uri })),
        RESOURCES,
        map,
        granted(resource),
      ),
    ),
  ).toEqual(expectedNames);
});

test("shows a prompt by its name, and a template to a token that can read a matching resource", () => {
  const prompts: List = { member: "prompts", usedBy: "prompts/get", name: "name" };
  const entries = ["one", "two"].map((name) => ({ name }));
  expect(names(visible(entries, prompts, map, granted("one")))).toEqual(["one"]);
  expect(names(visible(entries, prompts, map, granted("*")))).toEqual(["one", "two"]);
  const templates: List = { member: "resourceTemplates", usedBy: "resources/read", name: "uriTemplate" };
  expect(visible([{ uriTemplate: "note://{id}" }], templates, map, granted("note/a"))).toHaveLength(1);
});

test("a capability of another namespace or action shows no entry, and an entry without a name is hidden", () => {
  const other = [
    { namespace: "data", action: "read", resource: "**" },
    { namespace: "docs", action: "write", resource: "**" },
  ];
  expect(visible(tools, TOOLS, map, other)).toEqual([]);
  expect(visible([null, "fixed", { name: 7 }, {}], TOOLS, map, granted("**"))).toEqual([]);
  expect(names(visible(tools, TOOLS, map, undefined))).toEqual(["fixed", "every", "argued"]);
});

test("a tool that runs only as a task is hidden, because no client could call it", () => {
  const supporting = ["required", "optional", "forbidden"].map((taskSupport) => ({
    name: "fixed",
    execution: { taskSupport },
  }));
  const shown = visible([...supporting, { name: "fixed" }], TOOLS, map, granted("**"));
  expect(shown).toEqual([supporting[1], supporting[2], { name: "fixed" }]);
});
