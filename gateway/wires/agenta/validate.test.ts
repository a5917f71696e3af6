import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { AGENTA_MESSAGES, type AgentaMessage } from "./documents.ts";
import { compileAgenta } from "./validate.ts";

const FIXTURES = new URL("../../../packages/wire/fixtures/agenta/", import.meta.url);
const validate = compileAgenta();

const read = (file: string) => JSON.parse(readFileSync(new URL(file, FIXTURES), "utf8"));
const fixtures = readdirSync(FIXTURES).map((file) => [file, file.split(".", 1)[0] as AgentaMessage] as const);

describe("Agenta's documents", () => {
  test("every message has fixtures", () => {
    expect(new Set(fixtures.map(([, message]) => message))).toEqual(new Set(AGENTA_MESSAGES));
  });

  test.each(fixtures)("%s fits the published schema", (file, message) => {
    expect(validate(message, read(file))).toEqual({ ok: true });
  });

  test.each(fixtures)("%s fits the schema of no other message", (file, message) => {
    for (const other of AGENTA_MESSAGES) {
      if (other !== message) expect(validate(other, read(file)).ok).toBe(false);
    }
  });

  test.each([
    ["an unknown member", { surprise: 1 }, "", 'must NOT have additional properties: "surprise"'],
    ["a malformed time", { valid_from: "tomorrow" }, "/valid_from", 'must match format "date-time"'],
    [
      "another version",
      { protocol_version: "agenta.delegation.v1" },
      "/protocol_version",
      "must be equal to constant",
    ],
    ["a number for a text", { title: 1 }, "/title", "must be string"],
  ])("%s is refused with its place", (_, change, path, message) => {
    const result = validate("offer", { ...read("offer.minimal.json"), ...change });
    expect(result).toEqual({ ok: false, faults: [{ path, message }] });
  });

  test.each([[null], [[]], ["offer"], [{}], [JSON.parse('{"__proto__":{}}')]])(
    "%j is not a document",
    (document) => {
      expect(validate("offer", document).ok).toBe(false);
    },
  );
});
