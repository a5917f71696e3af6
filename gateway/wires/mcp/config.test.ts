import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManualClock } from "@depute/core";
import { createLogger, SettingsError } from "@depute/service";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { McpConfigFile } from "./config.ts";

const LOOK_MS = 1000;
const server = (command: string) => ({ stdio: { command } });

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-mcp-config-"));
  path = join(folder, "mcp.json");
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(upstreams: object): void {
  writeFileSync(path, JSON.stringify({ upstreams }));
}

function open() {
  const clock = new ManualClock();
  const applied: string[][] = [];
  const log = createLogger({ level: "silent", name: "test" });
  const warn = vi.spyOn(log, "warn");
  const file = new McpConfigFile({
    path,
    timers: clock,
    log,
    apply: ({ upstreams }) => applied.push([...upstreams.keys()]),
  });
  return { clock, applied, warn, file };
}

describe("an unusable file prevents the start", () => {
  test.each([
    ["malformed JSON", "{", "JSON"],
    ["a server without an address", '{"upstreams": {"a": {}}}', "/upstreams/a: stdio or http is required"],
    [
      "a server with the name of another address",
      '{"upstreams": {"message": {"stdio": {"command": "x"}}}}',
      "/upstreams/message: the platform itself uses this name: choose another name",
    ],
  ])("%s", (_, text, fault) => {
    writeFileSync(path, text);
    expect(open).toThrow(SettingsError);
    expect(open).toThrow(fault);
  });

  test("a missing file", () => {
    expect(open).toThrow(SettingsError);
  });
});

test("a changed file takes effect at the next check", () => {
  write({ a: server("x") });
  const { clock, applied } = open();
  clock.advance(LOOK_MS);
  expect(applied).toEqual([["a"]]);
  write({ a: server("x"), b: server("y") });
  clock.advance(LOOK_MS);
  clock.advance(LOOK_MS);
  expect(applied).toEqual([["a"], ["a", "b"]]);
});

test("one fault refuses the whole file, and is logged once", () => {
  write({ a: server("x") });
  const { clock, applied, warn } = open();
  write({ a: server("y"), b: { ...server("z"), requireToken: "no" } });
  for (let i = 0; i < 3; i++) clock.advance(LOOK_MS);
  expect(applied).toEqual([["a"]]);
  expect(warn.mock.calls).toEqual([
    [{ path }, expect.stringContaining("/upstreams/b/requireToken: must be true or false")],
  ]);
  write({ c: server("z") });
  clock.advance(LOOK_MS);
  expect(applied).toEqual([["a"], ["c"]]);
});

test("the servers stay while the file is missing", () => {
  write({ a: server("x") });
  const { clock, applied, warn } = open();
  rmSync(path);
  clock.advance(LOOK_MS);
  expect([applied, warn.mock.calls.length]).toEqual([[["a"]], 1]);
  write({ b: server("x") });
  clock.advance(LOOK_MS);
  expect(applied).toEqual([["a"], ["b"]]);
});

test("the file is not read after the close", () => {
  write({ a: server("x") });
  const { clock, applied, file } = open();
  file.close();
  write({ b: server("x") });
  clock.advance(LOOK_MS);
  expect(applied).toEqual([["a"]]);
});
