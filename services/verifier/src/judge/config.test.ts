import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readJudges } from "./config.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-judges-"));
afterAll(() => rmSync(folder, { recursive: true }));

const read = (content: unknown, hosts = ["models.example"]) => {
  const file = join(folder, "judges.json");
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return readJudges(file, hosts);
};
const good = { models: ["m"], style: "openai", url: "https://models.example/v1" };

test("reads judges by model, and none without a file", () => {
  expect(read([good]).get("m")).toMatchObject({ style: "openai", key: "", inputPrice: 0 });
  expect(read([good], ["models.example:443", "models.example"]).size).toBe(1);
  expect(readJudges("", []).size).toBe(0);
});

test.each<[what: string, content: unknown, hosts?: string[]]>([
  ["malformed JSON", "{"],
  ["a value that is not a list", {}],
  ["a host that is not allowed", [good], []],
  ["a host that only begins like an allowed one", [{ ...good, url: "https://models.example.evil/" }]],
  ["a user before the host", [{ ...good, url: "https://models.example@evil/" }]],
  ["another scheme", [{ ...good, url: "file://models.example/x" }]],
  ["no models", [{ ...good, models: [] }]],
  ["an unknown style", [{ ...good, style: "other" }]],
  ["a repeated model", [good, good]],
  ["an unknown member", [{ ...good, kefile: "x" }]],
  ["a missing key", [{ ...good, keyFile: join(folder, "none") }]],
  ["a malformed price", [{ ...good, inputMicrocentsPerMillion: -1 }]],
])("refuses: %s", (_, content, hosts) => {
  expect(() => read(content, hosts)).toThrow(expect.objectContaining({ name: "JudgeConfigError" }));
});
