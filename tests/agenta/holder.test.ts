import { holderHeaders } from "@depute/client";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { BUYER, introduceAll, marketAt, offerOf, requestOf, SELLER } from "./market.ts";

let platform: TestPlatform;
const keypair = generateKeypair(engine);
const REQUESTS = "/agenta/execution_requests";

beforeAll(async () => {
  platform = await startPlatform();
  await introduceAll(platform, { [BUYER]: keypair.principal.id });
});
afterAll(() => platform.stop());

/** A market in which every request has a proof of its own, for one address. */
function asHolder(path: string, method: "GET" | "POST", token?: string, holder = keypair) {
  const credentials = {
    engine,
    keypair: holder,
    publicUrl: platform.url,
    ...(token !== undefined && { token }),
  };
  return marketAt(platform.url, holderHeaders(credentials, path, method));
}

async function tokenFor(resource: string): Promise<string> {
  const { token } = await platform.clients.tokens.mintToken({
    requestId: crypto.randomUUID(),
    delegatee: keypair.principal.id,
    contractId: "ct_a1b2c3d4e5f6",
    capabilities: [{ namespace: "depute:tasks", action: "delegate", resource }],
    maxChainDepth: 1,
    maxBudgetMicrocents: 1_000_000n,
    lifetimeSeconds: 600,
  });
  return token?.token ?? "";
}

test("a buyer buys under its own key, and reads what it bought", async () => {
  const offer = await marketAt(platform.url).publish(offerOf());
  const request = requestOf(offer);
  const receipt = await asHolder(REQUESTS, "POST").request(request);
  expect(receipt.status).toBe("accepted");
  const path = `${REQUESTS}/${receipt.request_id}`;
  expect((await asHolder(path, "GET").send(path)).body).toEqual(receipt);
  const stranger = generateKeypair(engine);
  expect((await asHolder(path, "GET", undefined, stranger).send(path)).status).toBe(404);
  const forged = await asHolder(REQUESTS, "POST", undefined, stranger).post(REQUESTS, request);
  expect([forged.status, forged.body.error.code]).toEqual([403, "buyer_not_allowed"]);
});

test("a proof counts once, and for the address that it was made for", async () => {
  const offer = await marketAt(platform.url).publish(offerOf());
  const once = asHolder(REQUESTS, "POST");
  expect((await once.request(requestOf(offer))).status).toBe("accepted");
  expect((await once.post(REQUESTS, requestOf(offer))).status).toBe(401);
  const elsewhere = asHolder("/agenta/offers", "POST");
  expect((await elsewhere.post(REQUESTS, requestOf(offer))).status).toBe(401);
});

test("under a token, it buys what the token lets it buy and nothing else", async () => {
  const [allowed, other] = [offerOf(), offerOf()];
  for (const offer of [allowed, other]) await marketAt(platform.url).publish(offer);
  const token = await tokenFor(`${SELLER}/${String(allowed.offer_id)}`);
  const bought = await asHolder(REQUESTS, "POST", token).request(requestOf(allowed));
  expect(bought.status).toBe("accepted");
  const request = requestOf(other);
  const denied = await asHolder(REQUESTS, "POST", token).post(REQUESTS, request);
  expect([denied.status, denied.body.error.details.reason]).toEqual([403, "TOKEN_DENIED"]);
  const path = `${REQUESTS}/${String(request.request_id)}`;
  expect((await asHolder(path, "GET").send(path)).status).toBe(404);
});
