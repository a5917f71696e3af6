import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { relativeImports } from "./layers.ts";

interface Rule {
  readonly regex: RegExp;
  readonly isException: boolean;
}

/**
 * Returns the rules of a .dockerignore file. A rule matches a path or a folder above the path. As in Docker, the last
 * matching rule decides.
 */
function rulesOf(text: string): Rule[] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const pattern = line.replace(/^!/, "").replace(/^\//, "").replace(/\/$/, "");
      const source = pattern.replace(/\*\*\/|\*\*|\*|\?|[.+^$()|[\]\\{}]/g, (sign) => {
        if (sign === "**/") return "(?:.*/)?";
        if (sign === "**") return ".*";
        if (sign === "*") return "[^/]*";
        return sign === "?" ? "[^/]" : `\\${sign}`;
      });
      return { regex: new RegExp(`^${source}$`), isException: line.startsWith("!") };
    });
}

const rules = rulesOf(readFileSync(".dockerignore", "utf8"));

/** Whether a file is copied into the image. */
function isIn(path: string): boolean {
  const steps = path.split("/");
  const paths = steps.map((_, i) => steps.slice(0, i + 1).join("/"));
  let isExcluded = false;
  for (const { regex, isException } of rules)
    if (paths.some((each) => regex.test(each))) isExcluded = !isException;
  return !isExcluded;
}

const tracked = execFileSync("git", ["ls-files"], { encoding: "utf8" }).trim().split("\n").filter(existsSync);
const ROOMS = [
  "",
  "cli/",
  "cli/src/",
  "packages/service/src/",
  "services/tokens/",
  "gateway/wires/nekte/",
  "tools/",
  "proto/",
];

test.each(ROOMS)("the image contains no secret and no data from %j", (folder) => {
  const secrets = [
    ".env",
    ".env.production",
    "credentials.json",
    "root.key",
    "card.key",
    "tls.pem",
    "a/b/server.key",
  ];
  const data = [
    "data/tasks.sqlite",
    "data/root.key",
    "tasks.sqlite",
    "tasks.sqlite-wal",
    "data/revocations.checkpoint",
    "npm.log",
  ];
  expect([...secrets, ...data].map((name) => `${folder}${name}`).filter(isIn)).toEqual([]);
});

test("the image contains no test, no document and no file of the repository's own tools", () => {
  const knownFiles = tracked.filter(isIn);
  expect(
    knownFiles.filter((path) => /\.test\.ts$|\/testing\/|^(?:tests|docs|bench|\.git|\.ci)\//.test(path)),
  ).toEqual([]);
  expect([".git/config", ".ci/run", "README.md", "docs/nekte.md", "tests/cap/cast.ts"].filter(isIn)).toEqual(
    [],
  );
  expect(["node_modules/ajv/package.json", "gateway/node_modules/ws/a.js"].filter(isIn)).toEqual([]);
});

/** Returns the files that a source file reads by a path relative to itself. */
function filesReadBy(path: string): string[] {
  const source = readFileSync(path, "utf8");
  const read = [...source.matchAll(/new URL\(\s*[`"](\.[^`"$]+)[`"],\s*import\.meta\.url/g)].map(
    (match) => match[1] ?? "",
  );
  return read.map((name) => normalize(join(dirname(path), name)));
}

test("the image contains everything that the build and the processes need", async () => {
  const imports = await relativeImports(process.cwd(), [
    "packages",
    "services",
    "gateway",
    "cli",
    "examples",
    "tools",
  ]);
  const manifests = tracked.filter((path) => /(?:^|\/)package\.json$/.test(path));
  const exported = manifests.flatMap((path) => {
    const { exports = {} } = JSON.parse(readFileSync(path, "utf8")) as { exports?: Record<string, string> };
    return Object.entries(exports).flatMap(([name, file]) =>
      name.includes("testing") || file.includes("gen/") ? [] : [normalize(join(dirname(path), file))],
    );
  });
  const open = [
    ...["package-lock.json", "buf.yaml", "buf.gen.yaml", "cli/src/main.ts", "tools/generate.ts"],
    ...manifests,
    ...exported,
    ...tracked.filter((path) => path.startsWith("proto/")),
  ];
  const needed = new Set<string>();
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (needed.has(path) || !tracked.includes(path)) continue;
    needed.add(path);
    if (path.endsWith(".ts")) open.push(...(imports.get(path) ?? []), ...filesReadBy(path));
  }
  expect(needed.size).toBeGreaterThan(400);
  expect([...needed].filter((path) => !isIn(path))).toEqual([]);
});

test("a later rule has priority, and a rule about a folder applies to its contents", () => {
  const [star, room, deep] = rulesOf("*\n!room\n**/data");
  expect([star, room, deep].map((rule) => rule?.isException)).toEqual([false, true, false]);
  expect(deep?.regex.test("room/a/data")).toBe(true);
  expect(star?.regex.test("room/a")).toBe(false);
});
