import { clone } from "@bufbuild/protobuf";
import { type Offer, OfferSchema, PricingModel } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import type { DeputeError } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { describe, expect, it } from "vitest";
import { offerOf } from "../testing/offer.ts";
import { isOpen, nextVersion, offerDigest, readOffer } from "./offer.ts";

const NOW = Date.UTC(2026, 0, 1);

function faults(change: (offer: Offer) => void): string[] {
  const offer = offerOf();
  change(offer);
  try {
    readOffer(offer, "acme", NOW);
    return [];
  } catch (error) {
    return (error as DeputeError).violations.map(({ field }) => field);
  }
}

describe("readOffer", () => {
  it("reads times and words", () => {
    const read = readOffer(offerOf({ validUntil: "2026-02-01T02:00:00+02:00" }), "acme", NOW);
    expect(read).toMatchObject({
      validFrom: Date.UTC(2025, 11, 1),
      validUntil: Date.UTC(2026, 1, 1),
      capabilities: ["nlp.sentiment"],
      buyers: undefined,
    });
    expect(readOffer(offerOf(), "acme", NOW).validUntil).toBe(Number.MAX_SAFE_INTEGER);
    expect(readOffer(offerOf({ allowedBuyerAgents: { values: [] } }), "acme", NOW).buyers).toEqual([]);
  });

  it.each<[string, (offer: Offer) => void, string[]]>([
    ["nothing wrong", () => {}, []],
    [
      "an end before its start",
      (o) => Object.assign(o, { validUntil: "2025-11-30T00:00:00Z" }),
      ["offer.valid_until"],
    ],
    ["an end at its beginning", (o) => Object.assign(o, { validUntil: o.validFrom }), ["offer.valid_until"]],
    [
      "an end in the past",
      (o) => Object.assign(o, { validUntil: "2025-12-31T23:59:59Z" }),
      ["offer.valid_until"],
    ],
    ["an invalid date", (o) => Object.assign(o, { validFrom: "2026-02-30T00:00:00Z" }), ["offer.valid_from"]],
    [
      "a target over the maximum",
      (o) => {
        if (o.serviceLevels) o.serviceLevels.targetCompletionSeconds = 601n;
      },
      ["offer.service_levels.target_completion_seconds"],
    ],
    [
      "a usage-based price without a unit",
      (o) => {
        if (o.pricing) o.pricing.pricingModel = PricingModel.USAGE_BASED;
      },
      ["offer.pricing.unit"],
    ],
    [
      "a usage-based price in a unit outside receipts",
      (o) => {
        if (o.pricing) Object.assign(o.pricing, { pricingModel: PricingModel.USAGE_BASED, unit: "pages" });
      },
      ["offer.pricing.unit"],
    ],
    [
      "a usage-based price of compute seconds",
      (o) => {
        if (o.pricing) {
          Object.assign(o.pricing, { pricingModel: PricingModel.USAGE_BASED, unit: "compute_seconds" });
        }
      },
      [],
    ],
    [
      "a window that ends before its start",
      (o) => {
        const window = { notBefore: "2026-05-02T00:00:00Z", notAfter: "2026-05-01T00:00:00Z" };
        Object.assign(o, { executionWindow: window });
      },
      ["offer.execution_window.not_after"],
    ],
    [
      "a window that ends before the offer's start",
      (o) => Object.assign(o, { executionWindow: { notAfter: "2025-11-01T00:00:00Z" } }),
      ["offer.execution_window.not_after"],
    ],
    [
      "another organization",
      (o) => {
        if (o.sellerAgent) o.sellerAgent.organizationId = "other";
      },
      ["offer.seller_agent.organization_id"],
    ],
    [
      "several faults at once",
      (o) => {
        o.validUntil = "2025-11-30T00:00:00Z";
        if (o.serviceLevels) o.serviceLevels.maxCompletionSeconds = 1n;
      },
      ["offer.valid_until", "offer.service_levels.target_completion_seconds"],
    ],
  ])("%s", (_, change, expected) => {
    expect(faults(change)).toEqual(expected);
  });
});

describe("offerDigest", () => {
  it("differs by content, not by version", () => {
    const digest = offerDigest(offerOf(), sha256Hex);
    expect(offerDigest(offerOf({ offerVersion: "7" }), sha256Hex)).toBe(digest);
    expect(offerDigest(offerOf({ title: "Other" }), sha256Hex)).not.toBe(digest);
    expect(offerDigest(offerOf({ allowedBuyerAgents: { values: [] } }), sha256Hex)).not.toBe(digest);
  });

  it("does not change the offer", () => {
    const offer = offerOf({ offerVersion: "7" });
    offerDigest(offer, sha256Hex);
    expect(offer).toEqual(clone(OfferSchema, offerOf({ offerVersion: "7" })));
  });
});

describe("isOpen", () => {
  const offer = { withdrawn: false, validFrom: 10, validUntil: 20 };

  it.each<[string, Partial<typeof offer>, number, boolean]>([
    ["before it begins", {}, 9, false],
    ["when it begins", {}, 10, true],
    ["before it ends", {}, 19, true],
    ["when it ends", {}, 20, false],
    ["withdrawn", { withdrawn: true }, 15, false],
  ])("%s", (_, parts, now, expected) => {
    expect(isOpen({ ...offer, ...parts }, now)).toBe(expected);
  });
});

describe("nextVersion", () => {
  it.each<[number, string[], string]>([
    [0, [], "1"],
    [2, ["1", "2"], "3"],
    [2, ["a", "3"], "4"],
    [3, ["4", "5", "x"], "6"],
  ])("after %d versions, of which %j", (count, usedVersions, expected) => {
    expect(nextVersion(count, (version) => usedVersions.includes(version))).toBe(expected);
  });
});
