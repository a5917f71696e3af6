import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { checkBreaking } from "./breaking.ts";

const roots: string[] = [];
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true });
});

let root: string;
const git = (...args: string[]) => {
  const identity = [
    "-c",
    "user.name=test",
    "-c",
    "user.email=test@example.com",
    "-c",
    "commit.gpgsign=false",
  ];
  execFileSync("git", [...identity, ...args], { cwd: root, stdio: "pipe" });
};
const message = (fields: string) =>
  `syntax = "proto3";\npackage sample.v1;\nmessage Sample {\n${fields}\n}\n`;
const write = (fields: string) => {
  mkdirSync(join(root, "proto/sample/v1"), { recursive: true });
  writeFileSync(join(root, "proto/sample/v1/sample.proto"), message(fields));
};
const commit = (fields: string) => {
  write(fields);
  git("add", ".");
  git("commit", "-q", "--allow-empty", "-m", "next");
};

const BEFORE = "int64 count = 1;\nstring name = 2;";
const MORE = `${BEFORE}\nstring more = 3;`;
const LESS = "int64 count = 1;";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "depute-breaking-test-"));
  roots.push(root);
  git("init", "-q", "-b", "main");
  const settings = ["version: v2", "modules:", "  - path: proto", "breaking:", "  use:", "    - WIRE_JSON"];
  writeFileSync(join(root, "buf.yaml"), `${settings.join("\n")}\n`);
});

describe("on main, against the commit before", () => {
  test.each([
    { change: "nothing", fields: BEFORE, kind: "compatible" },
    { change: "a new field", fields: MORE, kind: "compatible" },
    { change: "a removed field", fields: LESS, kind: "breaking" },
    { change: "another type", fields: "int32 count = 1;\nstring name = 2;", kind: "breaking" },
    { change: "another JSON name", fields: "int64 count = 1;\nstring title = 2;", kind: "breaking" },
  ])("$change is $kind", ({ fields, kind }) => {
    commit(BEFORE);
    commit(fields);
    expect(checkBreaking(root).kind).toBe(kind);
  });

  test("what is not committed yet counts, and the report says where it breaks", () => {
    commit(BEFORE);
    commit(BEFORE);
    write(LESS);
    expect(checkBreaking(root)).toMatchObject({
      kind: "breaking",
      report: expect.stringMatching(/proto\/sample\/v1\/sample\.proto:3:.*"2".*"name"/),
    });
  });
});

describe("on a branch, against where it left main", () => {
  test("every commit of the branch counts", () => {
    commit(BEFORE);
    git("update-ref", "refs/remotes/origin/main", "HEAD");
    git("switch", "-q", "-c", "branch");
    commit(LESS);
    commit(LESS);
    expect(checkBreaking(root).kind).toBe("breaking");
  });

  test("what came and went within the branch does not", () => {
    commit(BEFORE);
    git("update-ref", "refs/remotes/origin/main", "HEAD");
    git("switch", "-q", "-c", "branch");
    commit(MORE);
    commit(BEFORE);
    expect(checkBreaking(root).kind).toBe("compatible");
  });
});

describe("with nothing to compare with", () => {
  test("no history", () => {
    rmSync(join(root, ".git"), { recursive: true });
    expect(checkBreaking(root)).toEqual({ kind: "no-base", why: "there is no git history here" });
  });

  test("the first commit", () => {
    commit(BEFORE);
    expect(checkBreaking(root)).toEqual({ kind: "no-base", why: "this is the first commit" });
  });

  test("a base without contracts", () => {
    git("add", ".");
    git("commit", "-q", "-m", "settings");
    commit(BEFORE);
    expect(checkBreaking(root)).toMatchObject({
      kind: "no-base",
      why: expect.stringMatching("has no contracts"),
    });
  });

  test("a base that does not compile", () => {
    commit("nonsense");
    commit(BEFORE);
    expect(checkBreaking(root)).toMatchObject({
      kind: "no-base",
      why: expect.stringMatching("do not compile"),
    });
  });
});

test("a shallow clone says what it lacks", () => {
  commit(BEFORE);
  commit(LESS);
  const clone = mkdtempSync(join(tmpdir(), "depute-breaking-test-"));
  roots.push(clone);
  git("clone", "-q", "--depth", "1", pathToFileURL(root).href, clone);
  expect(checkBreaking(clone)).toMatchObject({
    kind: "lacking",
    why: expect.stringMatching("git fetch --unshallow"),
  });
});
