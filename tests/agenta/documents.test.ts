import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import type { Document } from "./market.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${platform.url}${path}`, { headers });

const DOCUMENTS = [
  ["/.well-known/agent.json", "application/json"],
  ["/index.json", "application/json"],
  ["/specs/index.json", "application/json"],
  ["/pricing/index.json", "application/json"],
  ["/verification/index.json", "application/json"],
  ["/protocols/agenta.delegation.v0", "text/html; charset=utf-8"],
  ["/protocols/agenta.delegation.v0/index.json", "application/json"],
  ["/artifacts/protocols/agenta.delegation.v0.md", "text/markdown; charset=utf-8"],
  ["/schemas/agenta.delegation.v0/offer.schema.json", "application/schema+json"],
] as const;

describe.each(DOCUMENTS)("%s", (path, type) => {
  test("is served, and not sent again to a client that has it", async () => {
    const first = await get(path);
    expect([first.status, first.headers.get("content-type")]).toEqual([200, type]);
    const body = await first.text();
    expect(Number(first.headers.get("content-length"))).toBe(Buffer.byteLength(body));
    const [etag, modified] = [first.headers.get("etag") ?? "", first.headers.get("last-modified") ?? ""];
    expect(Date.parse(modified)).toBeLessThanOrEqual(Date.now());
    for (const headers of [{ "if-none-match": etag }, { "if-modified-since": modified }]) {
      const again = await get(path, headers as unknown as Record<string, string>);
      expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", etag]);
    }
    expect((await get(path, { "if-none-match": '"other"' })).status).toBe(200);
    expect((await fetch(`${platform.url}${path}`, { method: "POST" })).status).toBe(405);
  });
});

test("the card leads to every other document", async () => {
  const seen = new Set<string>();
  const queue = ["/.well-known/agent.json"];
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const response = await get(path);
    expect([path, response.status]).toEqual([path, 200]);
    const text = await response.text();
    if (!response.headers.get("content-type")?.includes("json") || path.startsWith("/schemas/")) continue;
    const follow = (value: Document): void => {
      if (typeof value === "object" && value !== null) for (const each of Object.values(value)) follow(each);
      if (typeof value !== "string" || !value.startsWith(platform.url) || value.includes("{")) return;
      const next = value.slice(platform.url.length) || "/index.json";
      // Documents contain these two addresses, but they are for calls: executions need a party, and verifications need
      // a receipt. So the test does not follow them.
      if (!/^\/agenta\/(execution_requests|verification_results)/.test(next)) queue.push(next);
    };
    follow(JSON.parse(text));
  }
  for (const [path] of DOCUMENTS) expect(seen).toContain(path);
});

test("the page and the Markdown agree with the manifest", async () => {
  const manifest = (await (await get("/protocols/agenta.delegation.v0/index.json")).json()) as Document;
  const html = await (await get("/protocols/agenta.delegation.v0")).text();
  const markdown = await (await get("/artifacts/protocols/agenta.delegation.v0.md")).text();
  const words = [
    manifest.protocol_id,
    manifest.purpose,
    ...manifest.message_types,
    ...manifest.state_transitions.terminal,
    ...Object.values<string[]>(manifest.failure_modes).flat(),
  ];
  for (const word of words)
    expect([word, html.includes(word), markdown.includes(word)]).toEqual([word, true, true]);
  for (const transition of manifest.state_transitions.allowed) {
    expect(html).toContain(transition.replace(">", "&#62;"));
    expect(markdown).toContain(transition);
  }
});

test("the price rules use the words of the schema", async () => {
  const schema = (await (await get("/schemas/agenta.delegation.v0/offer.schema.json")).json()) as Document;
  const pricing = (await (await get("/pricing/index.json")).json()) as Document;
  const verification = (await (await get("/verification/index.json")).json()) as Document;
  const { pricing: price, verification_policy: policy } = schema.properties;
  expect(Object.keys(pricing.pricing_models)).toEqual(price.properties.pricing_model.enum);
  expect(Object.keys(verification.modes)).toEqual(policy.properties.mode.enum);
});
