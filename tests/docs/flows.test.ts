import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { pages } from "./pages.ts";

const FLOWS = pages().filter(({ path }) => path.startsWith("docs/flows/"));

test("the main flows have diagrams", () => {
  expect(FLOWS.length).toBeGreaterThanOrEqual(9);
  for (const { text } of FLOWS) expect(text).toContain("sequenceDiagram");
});

test.each(FLOWS.map(({ path, text }) => [path, text] as const))("%s names existing functions", (_, text) => {
  const steps = [...text.matchAll(/^\| [^|]+ \| `([^`]+)` \| `([^`]+)` \|$/gm)];
  expect(steps.length).toBeGreaterThanOrEqual(4);
  const missing = steps.filter(([, file = "", name = ""]) => {
    return !existsSync(file) || !new RegExp(`\\b${name}\\b`).test(readFileSync(file, "utf8"));
  });
  expect(missing.map(([, file, name]) => `${file} ${name}`)).toEqual([]);
});
