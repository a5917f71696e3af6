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

  test.each<[string, string, number, string]>([
    [
      "a message that is not base64",
      "encoding=json&message=%7B%7D&base64=1",
      400,
      "message: is not base64url",
    ],
    ["no query", "", 415, "a GET needs the query parameters message and encoding"],
    ["another encoding", "encoding=xml&message=%7B%7D", 415, "a GET needs the query parameters"],
  ])("refuses %s as a fault of the request", async (_what, query, status, message) => {
    const response = await fetch(`${platform.url}/depute.verifier.v1.LogService/GetLogHead?${query}`);
    expect(await response.json()).toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(message),
      details: expect.arrayContaining([
        expect.objectContaining({ debug: expect.objectContaining({ reason: "INVALID_REQUEST" }) }),
      ]),
    });
    expect(response.status).toBe(status);
  });
});

describe("a wrong content type", () => {
  test.each([
    ["depute.registry.v1.AgentService/GetAgent", "text/plain", "application/json"],
    ["depute.tasks.v1.TaskService/WatchTask", "application/json", "application/connect+json"],
  ])("of %s is refused with the types that the method accepts", async (name, sent, accepted) => {
    const headers = { "content-type": sent };
    const response = await fetch(`${platform.url}/${name}`, { method: "POST", headers, body: "{}" });
    const { message } = (await response.json()) as { message: string };
    const types = message.split("use one of ")[1]?.split(", ") ?? [];
    expect([response.status, types.includes(accepted), types.includes(sent)]).toEqual([415, true, false]);
  });
});

describe("a JSON field of another type", () => {
  test.each<[string, object, string, string]>([
    ["a text in place of a number", { page_size: "many" }, "page_size", "expected number (int32)"],
    ["a number beyond 32 bits", { pageSize: 99_999_999_999 }, "page_size", "out of range"],
    ["a list in place of a text", { pageToken: ["a"] }, "page_token", "expected string"],
  ])("is named in google.rpc.BadRequest: %s", async (_what, body, field, description) => {
    const response = await fetch(`${platform.url}/depute.registry.v1.AgentService/ListAgents`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const { details } = (await response.json()) as { details: { debug: object }[] };
    expect(details.map(({ debug }) => debug)).toContainEqual({
      fieldViolations: [{ field, description: expect.stringContaining(description) }],
    });
  });
});
