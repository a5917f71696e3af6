import { createHash, createPublicKey, verify } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { ShiftedClock } from "./clock.ts";
import {
  type Document,
  inSeconds,
  introduceAll,
  type Market,
  marketAt,
  offerOf,
  requestOf,
  SELLER,
  valid,
} from "./market.ts";

interface Call {
  readonly request: IncomingMessage;
  readonly body: string;
}

const calls: Call[] = [];
/** The status with which the buyer's address answers. Tests may replace it. */
let status = 204;
let listener: Server;
let platform: TestPlatform;
let market: Market;
let url: string;
const clock = new ShiftedClock();

beforeAll(async () => {
  listener = createServer(async (request, answer) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    calls.push({ request, body });
    answer.writeHead(status, { location: "http://127.0.0.1:1/" }).end();
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  url = `http://${host}/receipts?of=me`;
  platform = await startPlatform(["--executions-callback-hosts", host], { clock });
  market = marketAt(platform.url);
  await introduceAll(platform);
  platform.work(SELLER, async () => ({
    output: { score: 1 },
    delivery: { artifacts: [{ type: "result_payload", uri: "data:,1" }] },
  }));
});
afterAll(async () => {
  await platform.stop();
  listener.closeAllConnections();
  await new Promise((resolve) => listener.close(resolve));
});

async function buy(address: string, reference = "ref-1"): Promise<Document[]> {
  calls.length = 0;
  const offer = await market.publish(offerOf());
  const callback = { url: address, auth_reference: reference };
  const { request_id: id } = await market.request(
    requestOf(offer, { callback, execution_constraints: { deadline_at: inSeconds(600, clock.now()) } }),
  );
  const callbacks: Document[] = [];
  for await (const { data } of market.watch(id)) callbacks.push(data);
  return callbacks;
}

/** Checks a signature as the buyer would, using only RFC 9421 and RFC 9530. */
function isSigned({ request, body }: Call, key: Document): boolean {
  const { headers } = request;
  const digest = createHash("sha256").update(body).digest("base64");
  const params = /^depute=(\(.*)$/.exec(String(headers["signature-input"]))?.[1] ?? "";
  const base = [
    `"@method": ${request.method}`,
    `"@target-uri": http://${headers.host}${request.url}`,
    `"content-type": ${headers["content-type"]}`,
    `"content-digest": sha-256=:${digest}:`,
    `"@signature-params": ${params}`,
  ].join("\n");
  const signature = /^depute=:(.*):$/.exec(String(headers.signature))?.[1] ?? "";
  expect(params).toContain(`keyid="${key.kid}"`);
  const publicKey = createPublicKey({ key, format: "jwk" });
  return verify(null, Buffer.from(base), publicKey, Buffer.from(signature, "base64"));
}

test("every receipt is sent in order, signed and with an id that identifies repetitions", async () => {
  status = 204;
  const reported = await buy(url);
  await expect.poll(() => calls.length).toBe(3);
  expect(calls.map(({ body }) => valid("execution_receipt", JSON.parse(body)))).toEqual(reported);
  const { body: key } = await market.send("/agenta/callback_key");
  for (const [at, call] of calls.entries()) {
    expect(isSigned(call, key)).toBe(true);
    expect(isSigned({ ...call, body: `${call.body} ` }, key)).toBe(false);
    expect(call.request.headers["idempotency-key"]).toBe(reported[at].receipt_id);
    expect(call.request.headers["agenta-auth-reference"]).toBe("ref-1");
  }
});

test("a refused receipt is retried with growing waits, before every later receipt", async () => {
  status = 500;
  const reported = await buy(url);
  await expect.poll(() => calls.length).toBeGreaterThanOrEqual(1);
  for (let tries = 0; tries < 3; tries++) {
    const before = calls.length;
    clock.skip(60_000);
    await expect.poll(() => calls.length, { timeout: 5000 }).toBeGreaterThan(before);
  }
  expect(new Set(calls.map(({ body }) => body)).size).toBe(1);
  status = 302;
  const before = calls.length;
  clock.skip(60_000);
  await expect.poll(() => calls.length, { timeout: 5000 }).toBeGreaterThan(before);
  // The platform does not follow a redirect, and does not count it as an accepted call.
  status = 200;
  calls.length = 0;
  clock.skip(120_000);
  await expect.poll(() => calls.length, { timeout: 5000 }).toBe(3);
  expect(calls.map(({ body }) => JSON.parse(body))).toEqual(reported);
});

test("a reference that does not fit in a header is omitted", async () => {
  status = 200;
  await buy(url, "a\r\nx-evil: 1");
  await expect.poll(() => calls.length).toBe(3);
  expect(calls[0]?.request.headers).not.toHaveProperty("agenta-auth-reference");
  expect(calls[0]?.request.headers).not.toHaveProperty("x-evil");
});

test.each([
  ["another host", () => "http://127.0.0.1:1/"],
  ["a name that resolves to the platform itself", () => url.replace("127.0.0.1", "localhost")],
  ["another form of the address", () => url.replace("127.0.0.1", "0x7f.1")],
  ["credentials in the address", () => url.replace("http://", "http://user:pass@")],
  ["another scheme", () => "ftp://127.0.0.1/"],
  ["the metadata of a cloud", () => "http://169.254.169.254/latest"],
])("nothing is sent to %s, and the execution continues", async (_, address) => {
  const reported = await buy(address());
  expect(reported.map(({ status: word }) => word)).toEqual(["accepted", "in_progress", "completed"]);
  clock.skip(60_000);
  await new Promise((resolve) => setTimeout(resolve, 100));
  // The allowed list compares addresses, not spellings. So another spelling of the listed address may receive
  // calls.
  if (!address().includes("0x7f")) expect(calls).toEqual([]);
});
