import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "./platform.ts";
import { overHttp1, type RawRequest } from "./raw-clients.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

const ask = (path: string, headers: RawRequest["headers"] = {}, method = "GET") =>
  overHttp1(platform.url)({ method, path, headers });

describe("the address /", () => {
  test("sends a browser to the console", async () => {
    const { status, headers } = await ask("/", { accept: "text/html,application/xhtml+xml,*/*;q=0.8" });
    expect([status, headers.location]).toEqual([303, "/console"]);
  });

  test.each(["*/*", "application/json"])("answers a client that accepts %s as before", async (accept) => {
    const { status, headers } = await ask("/", { accept });
    expect([status, headers["content-type"]]).toEqual([404, "application/json"]);
  });
});

describe("the page", () => {
  test("may run its own files alone", async () => {
    const { status, headers } = await ask("/console");
    const policy = String(headers["content-security-policy"]);
    expect([status, headers["content-type"]]).toEqual([200, "text/html; charset=utf-8"]);
    expect(policy.split("; ")).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "frame-ancestors 'none'",
      ]),
    );
    expect(policy).not.toContain("unsafe");
    expect(headers["x-content-type-options"]).toBe("nosniff");
  });

  test("has no inline script, no inline style and no address of another site", async () => {
    const { bytes } = await ask("/console");
    const text = bytes.toString();
    expect(text).not.toMatch(/<style|style=|<script(?![^>]*src=)|\son\w+=/);
    expect(text.replaceAll("http://www.w3.org/2000/svg", "")).not.toMatch(/https?:|\/\//);
  });

  test("is sent again only when it has changed", async () => {
    const { headers } = await ask("/console");
    expect(headers["cache-control"]).toBe("no-cache");
    const again = await ask("/console", { "if-none-match": String(headers.etag) });
    expect([again.status, again.bytes.length]).toEqual([304, 0]);
  });
});

describe("a file of the page", () => {
  const script = async () => /src="([^"]+\.js)"/.exec((await ask("/console")).bytes.toString())?.[1] ?? "";

  test("is cached for ever, because its name has its hash", async () => {
    const { status, headers } = await ask(await script());
    expect([status, headers["content-type"]]).toEqual([200, "text/javascript; charset=utf-8"]);
    expect(headers["cache-control"]).toBe("public, max-age=31536000, immutable");
  });

  test.each([
    ["gzip, br", "gzip"],
    ["gzip;q=0", undefined],
    ["identity", undefined],
  ])("accept-encoding %s gets the coding %s", async (accepted, coding) => {
    const path = await script();
    const plain = await ask(path);
    const { headers, bytes } = await ask(path, { "accept-encoding": accepted });
    expect(headers["content-encoding"]).toBe(coding);
    expect(Buffer.compare(coding === "gzip" ? gunzipSync(bytes) : bytes, plain.bytes)).toBe(0);
    expect(String(headers.vary).toLowerCase()).toContain("accept-encoding");
    expect(headers.etag === plain.headers.etag).toBe(coding === undefined);
  });

  test.each([
    "/console/assets/none.js",
    "/console/assets/..%2findex.html",
    "/console/assets/%2e%2e/index.html",
    "/console/other",
  ])("%s is not a file", async (path) => {
    expect((await ask(path)).status).toBe(404);
  });

  test("can only be read", async () => {
    const { status, headers } = await ask(await script(), {}, "DELETE");
    expect([status, headers.allow]).toEqual([405, "GET, HEAD"]);
  });
});
