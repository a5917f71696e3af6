import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { mergeModules } from "./merge-modules.ts";
import { thirdPartyNotices } from "./third-party-notices.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-merge-"));
afterAll(() => rmSync(folder, { recursive: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
}

const MODULES = {
  "compiled/cli/src/main.js": `
    import { text } from "../../gateway/src/index.js";
    const { late } = await import("../../services/late/src/index.js");
    console.log(JSON.stringify([text(), "—", await late()]));`,
  "compiled/gateway/src/index.js": `
    import { readFileSync } from "node:fs";
    export const text = () => readFileSync(new URL("../page.txt", import.meta.url), "utf8");`,
  "compiled/services/late/src/index.js": `
    import { once } from "node:events";
    import { Worker } from "node:worker_threads";
    const THREAD = new URL("./threads/thread.ts", import.meta.url);
    export const late = async () => (await once(new Worker(THREAD), "message"))[0];`,
  "compiled/services/late/src/threads/thread.js": `
    import { parentPort } from "node:worker_threads";
    import { shared } from "../shared.js";
    parentPort.postMessage(shared);`,
  "compiled/services/late/src/shared.js": `export const shared = "from the thread";`,
};

test("merged modules find their assets and threads, and load on demand what was loaded on demand", async () => {
  write({ ...MODULES, "out/gateway/page.txt": "a page" });
  const merged = await mergeModules({
    compiled: join(folder, "compiled"),
    entry: "cli/src/main.js",
    out: join(folder, "out"),
    place: (path) => path.replace(/^cli\//, ""),
  });
  expect(merged).toEqual({ thirdParty: [], imported: [] });
  expect(existsSync(join(folder, "out/services/late/src/threads/thread.js"))).toBe(true);
  const main = readFileSync(join(folder, "out/src/main.js"), "utf8");
  expect(main).not.toContain("threads/thread.js");
  // V8 keeps a file of Latin-1 in one byte for each character.
  expect(main).toMatch(/^[\0-\xff]*$/);
  const printed = execFileSync(process.execPath, [join(folder, "out/src/main.js")], { encoding: "utf8" });
  expect(JSON.parse(printed)).toEqual(["a page", "—", "from the thread"]);
});

test("a merge is refused when a module is missing", async () => {
  write({ "broken/cli/src/main.js": 'import "../../gateway/src/none.js";' });
  const merging = mergeModules({
    compiled: join(folder, "broken"),
    entry: "cli/src/main.js",
    out: join(folder, "out"),
    place: (path) => path,
  });
  await expect(merging).rejects.toThrow("none.js");
});

test("notices have the name, version and licence of each package, once", () => {
  const manifest = (name: string) => JSON.stringify({ name, version: "1.2.3", license: "MIT" });
  write({
    "node_modules/b/package.json": manifest("b"),
    "node_modules/b/LICENSE": "The terms of b",
    "node_modules/b/esm/package.json": '{"type": "module"}',
    "node_modules/@scope/a/package.json": manifest("@scope/a"),
  });
  const modules = ["b/index.js", "b/esm/index.js", "@scope/a/index.js"];
  const text = thirdPartyNotices(modules.map((file) => join(folder, "node_modules", file)));
  expect(text.match(/^## .*$/gm)).toEqual(["## @scope/a 1.2.3", "## b 1.2.3"]);
  expect(text).toContain("Licence: MIT\n\n```text\nThe terms of b\n```");
});

test("a package without a licence gets no notice", () => {
  write({ "node_modules/c/package.json": '{"name": "c", "version": "1.0.0"}' });
  expect(() => thirdPartyNotices([join(folder, "node_modules/c/index.js")])).toThrow(
    "c 1.0.0 states no licence",
  );
});
