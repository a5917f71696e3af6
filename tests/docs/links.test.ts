import { existsSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { anchorsOf, blocksOf, linksOf, pages } from "./pages.ts";

const all = pages();
const byPath = new Map(all.map((page) => [page.path, page]));

test.each(all.map((page) => [page.path, page] as const))("the links of %s have targets", (path, page) => {
  const broken = linksOf(page).filter((link) => {
    const [file = "", anchor] = link.split("#");
    const target = file === "" ? path : normalize(join(dirname(path), file));
    if (!existsSync(target)) return true;
    if (anchor === undefined || statSync(target).isDirectory()) return false;
    const there = byPath.get(target);
    return there !== undefined && !anchorsOf(there).includes(anchor);
  });
  expect(broken).toEqual([]);
});

test("the overview has at most 1,500 words", () => {
  const overview = byPath.get("docs/overview.md")?.text ?? "";
  expect(overview.split(/\s+/).length).toBeGreaterThan(300);
  expect(overview.split(/\s+/).length).toBeLessThanOrEqual(1500);
});

test("every package and service has a README", () => {
  const rooms = ["packages", "services"].flatMap((folder) =>
    all.filter(({ path }) => new RegExp(`^${folder}/[^/]+/README\\.md$`).test(path)),
  );
  for (const { text } of rooms) {
    expect(text).toMatch(/^## Entry points$/m);
    expect(text).toMatch(/^## What it must not know$/m);
  }
  expect(rooms.length).toBeGreaterThanOrEqual(15);
});

test("a block that is not run has a reason", () => {
  const reasons = all.flatMap((page) =>
    blocksOf(page).flatMap(({ notRun }) => (notRun === undefined ? [] : [notRun])),
  );
  for (const reason of reasons) expect(reason.length).toBeGreaterThan(15);
});
