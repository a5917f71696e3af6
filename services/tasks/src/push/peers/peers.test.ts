import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readPeerCredentials } from "./peers.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-credentials-"));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(content: string): string {
  const file = join(folder, "credentials.json");
  writeFileSync(file, content);
  return file;
}

describe("the file of credentials", () => {
  test("contains headers by origin", () => {
    const file = fileOf('{"https://a.example":{"bearer":"s1"},"grpcs://b.example:443":{"apikey":"s2"}}');
    expect([...readPeerCredentials(file)]).toEqual([
      ["https://a.example", { authorization: "Bearer s1" }],
      ["grpcs://b.example:443", { "x-api-key": "s2" }],
    ]);
    expect(readPeerCredentials("").size).toBe(0);
  });

  test.each([
    "{",
    "[]",
    '{"a.example":{"bearer":"secret"}}',
    '{"https://a.example/path":{"bearer":"secret"}}',
    '{"https://a.example":"secret"}',
    '{"https://a.example":{}}',
    '{"https://a.example":{"bearer":"secret","apikey":"secret"}}',
    '{"https://a.example":{"bearer":"secret\\nx: y"}}',
    '{"https://a.example":{"bearer":"secret","more":1}}',
  ])("that is malformed prevents the start, and the message contains no secret: %s", (content) => {
    const file = fileOf(content);
    expect(() => readPeerCredentials(file)).toThrow(/^(?!.*secret\\?n?x?: ?y)(?!.*"secret").*$/s);
  });
});
