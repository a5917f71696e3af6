import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { connect, holderHeaders } from "@depute/client";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { BUYER, introduceAll, marketAt, offerOf, requestOf, SELLER } from "./market.ts";

let platform: TestPlatform;
const keypair = generateKeypair(engine);
const seller = generateKeypair(engine);
const REQUESTS = "/agenta/execution_requests";

beforeAll(async () => {
  platform = await startPlatform();
  await introduceAll(platform, { [BUYER]: keypair.principal.id, [SELLER]: seller.principal.id });
});
afterAll(() => platform.stop());

/** Connects to a market with a new proof for each request. Each proof is valid for one address only. */
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
    lifetime: durationFromMs(600_000),
  });
  return token?.token ?? "";
}

test("a buyer buys with its own key, and reads its executions", async () => {
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

test("a proof counts once, and for its own address", async () => {
  const offer = await marketAt(platform.url).publish(offerOf());
  const once = asHolder(REQUESTS, "POST");
  expect((await once.request(requestOf(offer))).status).toBe("accepted");
  expect((await once.post(REQUESTS, requestOf(offer))).status).toBe(401);
  const elsewhere = asHolder("/agenta/offers", "POST");
  expect((await elsewhere.post(REQUESTS, requestOf(offer))).status).toBe(401);
});

test.each([
  ["HEAD", 200],
  ["GET", 401],
])("a HEAD request with a proof for %s is answered %i", async (method, status) => {
  const offer = await marketAt(platform.url).publish(offerOf());
  const { request_id: id } = await asHolder(REQUESTS, "POST").request(requestOf(offer));
  const path = `${REQUESTS}/${id}`;
  const headers = holderHeaders({ engine, keypair, publicUrl: platform.url }, path, method);
  expect((await fetch(`${platform.url}${path}`, { method: "HEAD", headers })).status).toBe(status);
});

test("an execution is found by its receipt, and shows the blocks of its token to the buyer alone", async () => {
  const offer = await marketAt(platform.url).publish(offerOf());
  const token = await tokenFor(`${SELLER}/${String(offer.offer_id)}`);
  const { receipt_id: value } = await asHolder(REQUESTS, "POST", token).request(requestOf(offer));
  const read = async (key: typeof keypair) => {
    const depute = connect(platform.url, { key });
    const name = { case: "receiptId", value } as const;
    const { execution } = await depute.services.executions.getExecution({ name });
    depute.close();
    return execution;
  };
  const own = await read(keypair);
  expect(own).toMatchObject({ buyerPrincipal: keypair.principal.id, authorityKnown: true });
  expect(own?.authorityRevocationIds).toEqual([expect.stringMatching(/^[\w-]{43}$/)]);
  expect(await read(seller)).toMatchObject({
    ...{ buyerPrincipal: "", authorityKnown: false, authorityRevocationIds: [] },
  });
  await expect(read(generateKeypair(engine))).rejects.toThrow(/not_found/);
});

test("with a token it buys only within the token's capabilities", async () => {
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
