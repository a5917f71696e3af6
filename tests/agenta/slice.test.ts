import { afterAll, beforeAll, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { introduceAll, type Market, marketAt, offerOf, requestOf, SELLER } from "./market.ts";

let platform: TestPlatform;
let market: Market;
beforeAll(async () => {
  platform = await startPlatform();
  market = marketAt(platform.url);
  await introduceAll(platform);
});
afterAll(() => platform.stop());

test("an offer is bought, worked on and settled", async () => {
  platform.work(SELLER, async () => ({
    output: { score: 0.5 },
    delivery: { artifacts: [{ type: "result_payload", uri: "data:,0.5" }] },
  }));
  const offer = await market.publish(offerOf());
  const first = await market.request(requestOf(offer));
  expect(first.status).toBe("accepted");
  const told = [];
  for await (const event of market.watch(first.request_id)) told.push([event.event, event.data.status]);
  expect(told).toEqual([
    ["receipt", "accepted"],
    ["receipt", "in_progress"],
    ["receipt", "completed"],
  ]);
  const newest = await market.newest(first.request_id);
  expect(newest).toMatchObject({
    result: { score: 0.5 },
    financials: { currency: "EUR", final_amount: 250 },
  });
});
