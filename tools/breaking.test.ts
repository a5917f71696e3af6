import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { checkBreaking, recordContracts } from "./breaking.ts";

const roots: string[] = [];
afterAll(() => {
  for (const root of roots) rmSync(root, { recursive: true });
});

let root: string;
const write = (fields: string, more = "") => {
  mkdirSync(join(root, "proto/sample/v1"), { recursive: true });
  const text = `syntax = "proto3";\npackage sample.v1;\nmessage Sample {\n${fields}\n}\n${more}`;
  writeFileSync(join(root, "proto/sample/v1/sample.proto"), text);
};

const FIELDS = "int64 count = 1;\nstring name = 2;";
const OTHER = "message Other {}\n";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "depute-breaking-test-"));
  roots.push(root);
  const settings = ["version: v2", "modules:", "  - path: proto", "breaking:", "  use:", "    - FILE"];
  writeFileSync(join(root, "buf.yaml"), `${settings.join("\n")}\n`);
});

test("unreleased contracts break nothing", () => {
  write(FIELDS);
  expect(checkBreaking(root)).toEqual({ kind: "no-release" });
});

describe("against the released contracts", () => {
  test.each([
    { change: "nothing", fields: FIELDS, more: OTHER, kind: "compatible" },
    { change: "a new field", fields: `${FIELDS}\nstring more = 3;`, more: OTHER, kind: "compatible" },
    { change: "a new message", fields: FIELDS, more: `${OTHER}message More {}\n`, kind: "compatible" },
    { change: "a removed field", fields: "int64 count = 1;", more: OTHER, kind: "breaking" },
    { change: "a removed message", fields: FIELDS, more: "", kind: "breaking" },
    { change: "another type", fields: "int32 count = 1;\nstring name = 2;", more: OTHER, kind: "breaking" },
    {
      change: "another JSON name",
      fields: "int64 count = 1;\nstring title = 2;",
      more: OTHER,
      kind: "breaking",
    },
  ])("$change is $kind", ({ fields, more, kind }) => {
    write(FIELDS, OTHER);
    recordContracts(root);
    write(fields, more);
    expect(checkBreaking(root).kind).toBe(kind);
  });

  test("the report names the place of each break", () => {
    write(FIELDS);
    recordContracts(root);
    write("int64 count = 1;");
    expect(checkBreaking(root)).toMatchObject({
      kind: "breaking",
      report: expect.stringMatching(/sample\/v1\/sample\.proto:.*"2".*"name"/),
    });
  });
});

describe("a new record", () => {
  test("accepts additions", () => {
    write(FIELDS);
    recordContracts(root);
    write(`${FIELDS}\nstring more = 3;`);
    recordContracts(root);
    write(FIELDS);
    expect(checkBreaking(root).kind).toBe("breaking");
  });

  test("is refused when the contracts break the previous record", () => {
    write(FIELDS);
    recordContracts(root);
    write("int64 count = 1;");
    expect(() => recordContracts(root)).toThrow(/"name"/);
  });

  test("resolves third-party imports from the current tree", () => {
    mkdirSync(join(root, "proto/sample/v1"), { recursive: true });
    const text = `syntax = "proto3";\npackage sample.v1;\nimport "google/protobuf/timestamp.proto";\nmessage Sample {\n  google.protobuf.Timestamp at = 1;\n}\n`;
    writeFileSync(join(root, "proto/sample/v1/sample.proto"), text);
    recordContracts(root);
    expect(checkBreaking(root)).toEqual({ kind: "compatible" });
  });
});
