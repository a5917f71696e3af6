import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

const DOCUMENTS = new URL("../../gateway/wires/agenta/documents/", import.meta.url);
const get = (path: string, init: RequestInit = {}) => fetch(`${platform.url}${path}`, init);

const PUBLISHED = [
  ...["offer", "execution_request", "execution_receipt", "verification_result"].map(
    (message) =>
      [
        `/schemas/agenta.delegation.v0/${message}.schema.json`,
        `${message}.schema.json`,
        "application/schema+json",
      ] as const,
  ),
  ["/protocols/agenta.delegation.v0/index.json", "manifest.json", "application/json"] as const,
];

describe.each(PUBLISHED)("%s", (path, file, type) => {
  test("is the published document, byte for byte", async () => {
    const response = await get(path);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe(type);
    expect(Buffer.from(await response.arrayBuffer()).equals(readFileSync(new URL(file, DOCUMENTS)))).toBe(
      true,
    );
  });

  test("is described by HEAD", async () => {
    const [head, wholeAnswer] = await Promise.all([get(path, { method: "HEAD" }), get(path)]);
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    for (const name of ["content-length", "content-type", "etag", "last-modified"]) {
      expect([name, head.headers.get(name)]).toEqual([name, wholeAnswer.headers.get(name)]);
      expect(head.headers.get(name)).not.toBeNull();
    }
  });

  test("is not sent again to a client that has it", async () => {
    const first = await get(path);
    await first.arrayBuffer();
    const etag = first.headers.get("etag") ?? "";
    const modified = first.headers.get("last-modified") ?? "";
    const cases: [Record<string, string>, number][] = [
      [{ "if-none-match": etag }, 304],
      [{ "if-none-match": `W/${etag}` }, 304],
      [{ "if-none-match": `"other", ${etag}` }, 304],
      [{ "if-none-match": "*" }, 304],
      [{ "if-none-match": '"other"' }, 200],
      [{ "if-modified-since": modified }, 304],
      [{ "if-modified-since": "Thu, 01 Jan 1970 00:00:00 GMT" }, 200],
      [{ "if-modified-since": "yesterday" }, 200],
      // If the client sends both headers, only the entity tag counts.
      [{ "if-none-match": '"other"', "if-modified-since": modified }, 200],
    ];
    for (const [headers, status] of cases) {
      const again = await get(path, { headers });
      const body = await again.text();
      expect([headers, again.status, again.headers.get("etag")]).toEqual([headers, status, etag]);
      expect(body === "").toBe(status === 304);
    }
  });
});

test.each([
  ["GET", "/schemas/agenta.delegation.v0/nothing.schema.json", 404],
  ["GET", "/schemas/agenta.delegation.v0/../manifest.json", 404],
  ["POST", "/protocols/agenta.delegation.v0/index.json", 405],
])("%s %s is answered %i", async (method, path, status) => {
  expect((await get(path, { method })).status).toBe(status);
});
