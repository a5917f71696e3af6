import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { OfferStatus } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { toTimestamp } from "@depute/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type OfferParts, offerOf } from "../testing/offer.ts";
import { ALICE, as, BOB, CAROL, type Platform, startPlatform } from "../testing/platform.ts";
import { refusal } from "../testing/refusal.ts";

const START = Date.UTC(2026, 0, 1);

let platform: Platform;
let requests = 0;
const newRequest = () => `request-${++requests}`;

const register = (id: string, principal: string, parts: Record<string, unknown> = {}) =>
  platform.agents.registerAgent(
    { requestId: newRequest(), agent: { id, principal, ...parts } },
    as(principal),
  );
const publish = (parts: OfferParts = {}, caller = ALICE, requestId = newRequest()) =>
  platform.offers.publishOffer({ requestId, offer: offerOf(parts) }, as(caller));
const get = (offerId = "offer-001", offerVersion = "", caller = BOB) =>
  platform.offers.getOffer({ offerId, offerVersion }, as(caller)).then(({ offer }) => offer);
const list = async (filter: Record<string, unknown> = {}, caller = BOB) => {
  const ids: string[] = [];
  let pageToken = "";
  do {
    const page = await platform.offers.listOffers({ ...filter, pageSize: 1, pageToken }, as(caller));
    ids.push(...page.offers.map(({ offer }) => `${offer?.offerId}@${offer?.offerVersion}`));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return ids;
};

beforeEach(async () => {
  platform = await startPlatform();
  await register("seller", ALICE, { organization: "acme" });
  await register("buyer", BOB);
});
afterEach(() => platform.stop());

describe("PublishOffer", () => {
  it("assigns the next free version, and changes no earlier one", async () => {
    expect((await publish()).offer).toMatchObject({
      current: true,
      open: true,
      offer: { offerVersion: "1" },
    });
    await publish({ offerVersion: "2", title: "Two" });
    expect((await publish({ title: "Three" })).offer?.offer).toMatchObject({ offerVersion: "3" });
    expect((await get("offer-001", "1"))?.offer).toEqual(offerOf({ offerVersion: "1" }));
    expect((await get("offer-001", "1"))?.current).toBe(false);
    expect((await get())?.offer?.title).toBe("Three");
  });

  it("changes nothing on equal content, and calls the verifier once", async () => {
    const first = await publish();
    expect(await publish()).toEqual(first);
    expect(await publish({ offerVersion: "1" })).toEqual(first);
    expect(platform.verifier.calls).toHaveLength(2);
  });

  it("answers a replay with the first answer", async () => {
    const first = await publish({}, ALICE, "same");
    await publish({ title: "Two" });
    expect(await publish({}, ALICE, "same")).toEqual(first);
    expect(await refusal(publish({ title: "Three" }, ALICE, "same"))).toMatchObject({
      reason: "REQUEST_ID_REUSED",
    });
  });

  it("refuses different content for a version", async () => {
    await publish({ offerVersion: "1" });
    const call = publish({ offerVersion: "1", title: "Other" });
    expect(await refusal(call)).toMatchObject({
      reason: "OFFER_VERSION_EXISTS",
      metadata: { offer: "offer-001", version: "1" },
    });
    expect((await get())?.offer?.title).toBe("Sentiment");
  });

  it.each<[string, OfferParts, string, Record<string, unknown>]>([
    ["another's seller", {}, BOB, { reason: "CALLER_NOT_ALLOWED", fields: ["offer.seller_agent.agent_id"] }],
    [
      "an unknown seller",
      { sellerAgent: { agentId: "nobody", organizationId: "acme" } },
      ALICE,
      { reason: "AGENT_NOT_FOUND" },
    ],
    [
      "another organization",
      { sellerAgent: { agentId: "seller", organizationId: "other" } },
      ALICE,
      { reason: "INVALID_REQUEST", fields: ["offer.seller_agent.organization_id"] },
    ],
    [
      "a contradiction",
      { validUntil: "2025-01-01T00:00:00Z" },
      ALICE,
      { reason: "INVALID_REQUEST", fields: ["offer.valid_until"] },
    ],
    [
      "a schema that does not compile",
      { inputSchema: fromJson(ValueSchema, { type: "nothing" }) },
      ALICE,
      { reason: "SCHEMA_INVALID", fields: ["offer.input_schema"] },
    ],
    [
      "no price",
      { pricing: undefined as never },
      ALICE,
      { reason: "INVALID_REQUEST", fields: ["offer.pricing"] },
    ],
  ])("refuses %s, and keeps nothing", async (_, parts, caller, expected) => {
    expect(await refusal(publish(parts, caller))).toMatchObject(expected);
    expect(await refusal(get("offer-001", "", ALICE))).toMatchObject({ reason: "OFFER_NOT_FOUND" });
  });

  it("keeps an offer's id for its first seller", async () => {
    await publish();
    await register("rival", BOB, { organization: "other" });
    const call = publish({ sellerAgent: { agentId: "rival", organizationId: "other" } }, BOB);
    expect(await refusal(call)).toMatchObject({ reason: "OFFER_VERSION_EXISTS", fields: ["offer.offer_id"] });
  });
});

describe("WithdrawOffer", () => {
  const withdraw = (offerVersion = "", caller = ALICE) =>
    platform.offers.withdrawOffer({ offerId: "offer-001", offerVersion, message: "sold out" }, as(caller));

  it("ends the sale of a version, which stays readable", async () => {
    await publish();
    await publish({ title: "Two" });
    expect(await withdraw("2")).toMatchObject({ withdrawnCount: 1 });
    expect(await withdraw("2")).toMatchObject({ withdrawnCount: 0 });
    expect(await list()).toEqual(["offer-001@1"]);
    expect(await get("offer-001", "2")).toMatchObject({
      status: OfferStatus.WITHDRAWN,
      open: false,
      current: false,
      withdrawMessage: "sold out",
    });
    expect(await withdraw()).toMatchObject({ withdrawnCount: 1 });
    expect(await list()).toEqual([]);
    expect(await get()).toMatchObject({ status: OfferStatus.WITHDRAWN });
    expect((await publish()).offer?.offer?.offerVersion).toBe("3");
  });

  it("refuses other callers and unknown versions", async () => {
    await publish();
    expect(await refusal(withdraw("", BOB))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    expect(await refusal(withdraw("9"))).toMatchObject({
      reason: "OFFER_NOT_FOUND",
      metadata: { offer: "offer-001", version: "9" },
    });
  });
});

describe("the viewers of an offer", () => {
  it.each<[string, OfferParts, boolean, boolean]>([
    ["for everyone", {}, true, true],
    ["without viewers", { allowedBuyerAgents: { values: [] } }, false, false],
    ["for one buyer", { allowedBuyerAgents: { values: ["buyer"] } }, true, false],
  ])("%s", async (_, parts, buyer, other) => {
    await publish(parts);
    expect((await list({}, ALICE)).length).toBe(1);
    for (const [caller, isVisible] of [
      [BOB, buyer],
      [CAROL, other],
    ] as const) {
      expect((await list({}, caller)).length).toBe(isVisible ? 1 : 0);
      if (isVisible) expect(await get("offer-001", "", caller)).toBeDefined();
      else expect(await refusal(get("offer-001", "", caller))).toMatchObject({ reason: "OFFER_NOT_FOUND" });
    }
  });

  it("are the viewers of its seller only", async () => {
    await publish();
    await register("seller", ALICE, { organization: "acme", visibility: AgentVisibility.NAMED });
    expect(await list()).toEqual([]);
    expect(await refusal(get())).toMatchObject({ reason: "OFFER_NOT_FOUND" });
    expect(await list({}, ALICE)).toHaveLength(1);
  });
});

describe("ListOfferVersions", () => {
  const page = (pageToken = "", caller = BOB, offerId = "offer-001", pageSize = 1) =>
    platform.offers.listOfferVersions({ offerId, pageToken, pageSize }, as(caller));
  const versions = async (caller = BOB) => {
    const eventLines: string[] = [];
    let pageToken = "";
    do {
      const { offers, nextPageToken } = await page(pageToken, caller);
      eventLines.push(...offers.map(({ offer }) => offer?.offerVersion ?? ""));
      pageToken = nextPageToken;
    } while (pageToken !== "");
    return eventLines;
  };

  it("returns all versions, latest first, equal to GetOffer's", async () => {
    await publish();
    await publish({ offerVersion: "spring", title: "Two" });
    await publish({ offerId: "offer-002" });
    await publish({ title: "Three" });
    await platform.offers.withdrawOffer({ offerId: "offer-001", offerVersion: "spring" }, as(ALICE));
    expect(await versions()).toEqual(["3", "spring", "1"]);
    const { offers, nextPageToken } = await page("", BOB, "offer-001", 0);
    expect(offers).toEqual(
      await Promise.all(["3", "spring", "1"].map((version) => get("offer-001", version))),
    );
    expect(offers.map(({ status }) => status)).toEqual([
      OfferStatus.PUBLISHED,
      OfferStatus.WITHDRAWN,
      OfferStatus.PUBLISHED,
    ]);
    expect(nextPageToken).toBe("");
  });

  it("returns the versions that the caller may see", async () => {
    await publish({ allowedBuyerAgents: { values: [] } });
    await publish({ allowedBuyerAgents: { values: ["buyer"] } });
    await publish({ title: "For everyone" });
    await publish({ title: "For nobody", allowedBuyerAgents: { values: [] } });
    expect(await versions(ALICE)).toEqual(["4", "3", "2", "1"]);
    expect(await versions(BOB)).toEqual(["3", "2"]);
    expect(await versions(CAROL)).toEqual(["3"]);
  });

  it("gives equal answers for invisible and unknown offers", async () => {
    await publish({ allowedBuyerAgents: { values: ["buyer"] } });
    expect(await versions()).toEqual(["1"]);
    const unknown = await refusal(page("", CAROL, "offer-009"));
    expect(unknown).toMatchObject({ reason: "OFFER_NOT_FOUND", metadata: { offer: "offer-009" } });
    const unseen = await refusal(page("", CAROL));
    expect({ ...unseen, metadata: {}, message: "" }).toEqual({ ...unknown, metadata: {}, message: "" });
    await register("seller", ALICE, { organization: "acme", visibility: AgentVisibility.NAMED });
    expect(await refusal(page())).toMatchObject({ reason: "OFFER_NOT_FOUND" });
    expect(await versions(ALICE)).toEqual(["1"]);
  });

  it("refuses a page token of another list", async () => {
    await publish();
    await publish({ title: "Two" });
    await publish({ offerId: "offer-002" });
    const { nextPageToken } = await page();
    expect(await refusal(page(nextPageToken, BOB, "offer-002"))).toMatchObject({
      reason: "PAGE_TOKEN_INVALID",
    });
    const others = await platform.offers.listOffers({ pageSize: 1 }, as(BOB));
    expect(await refusal(page(others.nextPageToken))).toMatchObject({ reason: "PAGE_TOKEN_INVALID" });
  });
});

describe("ListOffers", () => {
  beforeEach(async () => {
    await register("other", CAROL, { organization: "fine" });
    await publish();
    await publish({
      offerId: "offer-002",
      validFrom: "2026-06-01T00:00:00Z",
      capabilities: { values: ["ocr"] },
    });
    const sellerAgent = { agentId: "other", organizationId: "fine" };
    await publish({ offerId: "offer-003", sellerAgent, validUntil: "2026-02-01T00:00:00Z" }, CAROL);
    await publish({ offerId: "offer-004", allowedBuyerAgents: { values: ["buyer"] } });
  });

  it.each<[string, Record<string, unknown>, string[]]>([
    ["all", {}, ["1", "2", "3", "4"]],
    ["a seller's", { sellerAgentId: "other" }, ["3"]],
    ["an organization's", { organizationId: "acme" }, ["1", "2", "4"]],
    ["a capability's, in either case", { capability: "Nlp.Sentiment" }, ["1", "3", "4"]],
    ["those valid now", { validAt: toTimestamp(START) }, ["1", "3", "4"]],
    ["those valid in summer", { validAt: toTimestamp(Date.UTC(2026, 6, 1)) }, ["1", "2", "4"]],
    ["those that a buyer may buy", { buyerAgentId: "nobody" }, ["1", "2", "3"]],
    [
      "all at once",
      { capability: "nlp.sentiment", organizationId: "acme", buyerAgentId: "buyer" },
      ["1", "4"],
    ],
  ])("%s", async (_, filter, expected) => {
    expect(await list(filter)).toEqual(expected.map((n) => `offer-00${n}@1`));
  });
});
