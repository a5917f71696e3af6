import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { introduceAll, type Market, marketAt, offerOf, SELLER } from "./market.ts";

let platform: TestPlatform;
let market: Market;
beforeAll(async () => {
  platform = await startPlatform();
  market = marketAt(platform.url);
  await introduceAll(platform);
});
afterAll(() => platform.stop());

const seller = { agent_id: SELLER, organization_id: "org:words" };

describe("an offer", () => {
  test("is published, read, listed and withdrawn", async () => {
    const published = await market.publish(offerOf({ capabilities: ["Sentiment"], metadata: { a: null } }));
    expect(published).toMatchObject({
      offer_version: "1",
      capabilities: ["Sentiment"],
      metadata: { a: null },
    });
    const path = `/agenta/offers/${published.offer_id}`;
    const read = await market.send(path);
    expect([read.status, read.body, read.headers.get("depute-offer-status")]).toEqual([
      200,
      published,
      "published",
    ]);
    expect((await market.send(`${path}/versions/1`)).body).toEqual(published);
    const list = await market.send(`/agenta/offers?seller_agent_id=${SELLER}&capability=sentiment&limit=200`);
    expect(list.body.offers).toContainEqual(published);
    const valid = await market.send(`/agenta/offers?valid_at=2020-01-01T00:00:00Z&limit=200`);
    expect(valid.body.offers).not.toContainEqual(published);
    const withdrawn = await market.send(path, { method: "DELETE" });
    expect(withdrawn.body.withdrawn_versions).toBe(1);
    expect((await market.send(path)).headers.get("depute-offer-status")).toBe("withdrawn");
    for (let i = 0; i < 2; i++) await market.publish(offerOf());
    const page = await market.send("/agenta/offers?limit=1");
    expect(page.body.offers).toHaveLength(1);
    const next = await market.send(`/agenta/offers?limit=1&cursor=${page.body.next_cursor}`);
    expect(next.body.offers[0].offer_id).not.toBe(page.body.offers[0].offer_id);
  });

  test.each<[string, JsonObject, number, string]>([
    ["an unknown field", { surprise: 1 }, 400, ""],
    [
      "a price in text",
      { pricing: { pricing_model: "fixed", currency: "EUR", amount: "1" } },
      400,
      "/pricing/amount",
    ],
    [
      "a usage-based price for a unit that no receipt reports",
      { pricing: { pricing_model: "usage_based", currency: "EUR", amount: 1, unit: "pages" } },
      400,
      "/pricing/unit",
    ],
    [
      "another principal's organization",
      { seller_agent: { ...seller, organization_id: "org:other" } },
      400,
      "/seller_agent/organization_id",
    ],
    ["a malformed schema", { input_schema: { type: "nothing" } }, 400, "/input_schema"],
    [
      "a schema with a remote reference",
      { output_schema: { $ref: "https://evil.example/schema" } },
      400,
      "/output_schema",
    ],
    ["an end before its beginning", { valid_until: "2025-01-01T00:00:00Z" }, 400, "/valid_until"],
    [
      "no required artifact",
      { verification_policy: { mode: "seller_attested", required_artifacts: [], pass_criteria: ["x"] } },
      400,
      "/verification_policy/required_artifacts",
    ],
  ])("with %s is refused, with the path", async (_, change, status, path) => {
    const refused = await market.post("/agenta/offers", offerOf(change));
    expect([refused.status, refused.body.error.code]).toEqual([status, "invalid_request"]);
    expect(refused.body.error.details.path.startsWith(path)).toBe(true);
  });

  test("is refused for an existing version with different content", async () => {
    const published = await market.publish(offerOf({ offer_version: "1.0" }));
    const other = await market.post("/agenta/offers", { ...published, title: "Other" });
    expect([other.status, other.body.error.code]).toEqual([409, "offer_version_mismatch"]);
    expect(await market.publish(published)).toEqual(published);
  });

  test("is not found if it does not exist", async () => {
    const { status, body } = await market.send("/agenta/offers/offer-of-nobody");
    expect([status, body.error.code]).toEqual([404, "offer_not_found"]);
  });
});
