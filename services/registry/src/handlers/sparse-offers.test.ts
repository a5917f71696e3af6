import { expect, it } from "vitest";
import { type OfferParts, offerOf } from "../testing/offer.ts";
import { ALICE, as, BOB, type Platform, startPlatform } from "../testing/platform.ts";

/** Number of publications that run at the same time. */
const AT_ONCE = 100;

const publish = (platform: Platform, parts: OfferParts) =>
  platform.offers.publishOffer({ requestId: parts.offerId as string, offer: offerOf(parts) }, as(ALICE));

it("a list that reads many rows answers with a partial page, and continues from its end", async () => {
  const platform = await startPlatform();
  try {
    for (const [id, principal] of [
      ["seller", ALICE],
      ["buyer", BOB],
    ] as const) {
      const agent = { id, principal, organization: principal === ALICE ? "acme" : "" };
      await platform.agents.registerAgent({ requestId: id, agent }, as(principal));
    }
    // Publishes 2,100 offers. One buyer may buy only the last of them.
    const words = { values: ["sum"] };
    for (let begin = 0; begin < 2_100; begin += AT_ONCE) {
      const publications = Array.from({ length: AT_ONCE }, (_, i) => begin + i).map((i) =>
        publish(platform, {
          offerId: `offer-${String(i).padStart(4, "0")}`,
          capabilities: words,
          allowedBuyerAgents: { values: i === 2_099 ? ["buyer"] : [] },
        }),
      );
      await Promise.all(publications);
    }
    for (const filter of [
      {},
      { capability: "sum" },
      { sellerAgentId: "seller" },
      { organizationId: "acme" },
    ]) {
      const first = await platform.offers.listOffers({ ...filter, buyerAgentId: "buyer" });
      expect(first.offers).toEqual([]);
      const pageToken = first.nextPageToken;
      const second = await platform.offers.listOffers({ ...filter, buyerAgentId: "buyer", pageToken });
      expect(second.offers.map(({ offer }) => offer?.offerId)).toEqual(["offer-2099"]);
      expect(second.nextPageToken).toBe("");
    }
  } finally {
    await platform.stop();
  }
}, 60_000);
