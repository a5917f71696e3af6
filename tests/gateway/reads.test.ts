import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { methods, nameOf } from "../contracts/contract-files.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

/** Calls an RPC with an empty JSON message, which the address carries as Connect's protocol for GET defines. */
const request = (method: string, name: string) =>
  fetch(`${platform.url}/${name}?connect=v1&encoding=json&message=%7B%7D`, { method });

const unary = methods.filter(({ methodKind }) => methodKind === "unary");
const isRead = ({ idempotency }: (typeof unary)[number]) => idempotency === Level.NO_SIDE_EFFECTS;
const reads = unary.filter(isRead).map((method) => nameOf(method));
const changes = unary.filter((method) => !isRead(method)).map((method) => nameOf(method));

describe("Connect by GET", () => {
  test.each(reads)("serves %s, and forbids caches to store the response", async (name) => {
    const response = await request("GET", name);
    await response.text();
    expect(response.status).not.toBe(405);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test.each(changes)("refuses %s, which changes state", async (name) => {
    const response = await request("GET", name);
    await response.text();
    expect([response.status, response.headers.get("cache-control")]).toEqual([405, "no-store"]);
  });

  test("answers HEAD with the same headers", async () => {
    const response = await request("HEAD", "depute.verifier.v1.LogService/GetLogHead");
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(await response.text()).toBe("");
  });
});
