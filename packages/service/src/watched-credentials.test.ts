import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ManualClock } from "@depute/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLogger } from "./log.ts";
import { WatchedCredentials } from "./watched-credentials.ts";

let folder: string;
let clock: ManualClock;
let opened: WatchedCredentials | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-credentials-"));
  clock = new ManualClock();
});
afterEach(() => {
  opened?.close();
  rmSync(folder, { recursive: true, force: true });
});

const file = (name: string) => join(folder, name);
const entryOf = (principal: string, secret: string, more = {}) => ({
  ...{ principal, sha256: createHash("sha256").update(secret).digest("hex"), ...more },
});

function write(entries: unknown): void {
  writeFileSync(file("credentials.json"), typeof entries === "string" ? entries : JSON.stringify(entries));
}

function open(identitiesPath = ""): WatchedCredentials {
  const log = createLogger({ level: "silent", name: "test" });
  opened = new WatchedCredentials({ path: file("credentials.json"), identitiesPath, timers: clock, log });
  return opened;
}

test("two secrets of a principal are valid during a rotation, and then only the remaining one", () => {
  write([entryOf("ada", "old")]);
  const credentials = open();
  expect(credentials.holderOf("new")).toBeUndefined();
  write([entryOf("ada", "old"), entryOf("ada", "new")]);
  clock.advance(2000);
  expect(["old", "new"].map((secret) => credentials.holderOf(secret)?.principal)).toEqual(["ada", "ada"]);
  write([entryOf("ada", "new", { roles: ["auditor"] })]);
  clock.advance(2000);
  expect(credentials.holderOf("old")).toBeUndefined();
  expect(credentials.rolesOf("ada")).toEqual(["auditor"]);
});

test("no credentials exist without a file, and a missing file is an error that names it", () => {
  const log = createLogger({ level: "silent", name: "test" });
  const openAt = (path: string) => new WatchedCredentials({ path, identitiesPath: "", timers: clock, log });
  expect(openAt("").size).toBe(0);
  const refusal = expect.objectContaining({
    name: "SettingsError",
    message: expect.stringContaining("cannot use the credentials file /no/such/file"),
  });
  expect(() => openAt("/no/such/file")).toThrow(refusal);
});

test.each<[string, unknown]>([
  ["malformed JSON", "["],
  ["a malformed entry beside a valid one", [entryOf("ada", "new"), { principal: "bob", sha256: "x" }]],
  ["another organization than the identities file", [entryOf("ada", "new", { organization: "other" })]],
])("a changed file with %s is refused completely", (_, entries) => {
  const certificates = [{ spiffeId: "spiffe://example.com/ada", principal: "ada", organization: "acme" }];
  writeFileSync(file("identities.json"), JSON.stringify({ certificates }));
  write([entryOf("ada", "old", { organization: "acme" })]);
  const credentials = open(file("identities.json"));
  write(entries);
  clock.advance(2000);
  expect(credentials.holderOf("old")?.organization).toBe("acme");
  expect(credentials.holderOf("new")).toBeUndefined();
});
