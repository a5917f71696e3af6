import { mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManualClock } from "@depute/core";
import { afterAll, expect, test } from "vitest";
import { CHECK_INTERVAL_MS } from "./identities/identities.ts";
import { InternalSecrets } from "./internal-secrets.ts";
import { createLogger } from "./log.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-internal-"));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, "secret");
const log = createLogger({ level: "silent", name: "test" });

const secretsOf = (text: string) => new InternalSecrets({ text, path: "", timers: new ManualClock(), log });

test.each<[string, string | null, boolean]>([
  ["a", "a", true],
  ["a", "b", false],
  ["a", "", false],
  ["a", null, false],
  ["", "", false],
  ["", null, false],
  ["new\nold\n", "old", true],
  ["new\nold\n", "new", true],
  ["new\nold\n", "new\nold", false],
  ["new\r\n\r\nold", "", false],
])("the secrets %j accept %j: %s", (secrets, text, isAccepted) => {
  expect(secretsOf(secrets).accepts(text)).toBe(isAccepted);
});

test("a process sends the first secret, or none without secrets", () => {
  expect(secretsOf("new\nold").sent).toBe("new");
  expect(secretsOf("").sent).toBe("");
});

test("a changed file takes effect after two seconds; an empty or missing one changes nothing", () => {
  const timers = new ManualClock();
  writeFileSync(path, "old\n");
  const secrets = new InternalSecrets({ text: "old", path, timers, log });
  const state = () => [secrets.sent, secrets.accepts("old"), secrets.accepts("new")];
  const states: unknown[] = [];
  const changes = ["old\nnew\n", "new\nold\n", "\n", undefined, "new\n"];
  for (const change of changes) {
    if (change === undefined) unlinkSync(path);
    else writeFileSync(path, change);
    timers.advance(CHECK_INTERVAL_MS);
    states.push(state());
  }
  expect(states).toEqual([
    ["old", true, true],
    ["new", true, true],
    ["new", true, true],
    ["new", true, true],
    ["new", false, true],
  ]);
  secrets.close();
  expect(timers.pending).toBe(0);
});
