import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Affiliation, haveOneOwner, thirdPartyFault } from "./independence.ts";

const agent = (agentId: string, principal: string, ...organizations: string[]): Affiliation => ({
  agentId,
  principal,
  organizations,
});
const affiliations = fc.record({
  agentId: fc.constantFrom("a", "b", "c", "d"),
  principal: fc.constantFrom("", "k1", "k2", "k3"),
  organizations: fc.uniqueArray(fc.constantFrom("o1", "o2", "o3"), { maxLength: 2 }),
});

describe("the common owner of two agents", () => {
  it.each<[string, Affiliation, Affiliation, boolean]>([
    ["exists if they are one agent", agent("a", "k1"), agent("a", "k2"), true],
    ["exists if they have one key", agent("a", "k1", "o1"), agent("b", "k1", "o2"), true],
    ["exists if both have no key", agent("a", ""), agent("b", ""), true],
    [
      "exists if they share a proven organization",
      agent("a", "k1", "o1", "o2"),
      agent("b", "k2", "o2"),
      true,
    ],
    ["does not exist for two keys", agent("a", "k1"), agent("b", "k2"), false],
    ["does not exist for a key and no key", agent("a", "k1"), agent("b", ""), false],
    ["does not exist for two proven organizations", agent("a", "k1", "o1"), agent("b", "k2", "o2"), false],
  ])("%s", (_, a, b, expected) => {
    expect(haveOneOwner(a, b)).toBe(expected);
    expect(haveOneOwner(b, a)).toBe(expected);
  });
});

describe("a third party", () => {
  const seller = agent("seller", "k-seller");
  const buyer = agent("buyer", "k-buyer", "org:buyer");
  it.each<[string, Affiliation, string[], ReturnType<typeof thirdPartyFault>]>([
    ["of a proven organization can verify", agent("judge", "k-judge", "org:judge"), [], undefined],
    ["without a proof cannot verify", agent("judge", "k-judge"), [], "not_proven"],
    [
      "without a proof can verify if the buyer names it",
      agent("judge", "k-judge"),
      ["other", "judge"],
      undefined,
    ],
    [
      "that the buyer does not name cannot verify",
      agent("judge", "k-judge", "org:judge"),
      ["other"],
      "not_named",
    ],
    [
      "of the seller's key cannot verify, even if named",
      agent("judge", "k-seller", "o"),
      ["judge"],
      "one_owner",
    ],
    [
      "of the buyer's key cannot verify, even if named",
      agent("judge", "k-buyer", "o"),
      ["judge"],
      "one_owner",
    ],
    ["of the buyer's organization cannot verify", agent("judge", "k-judge", "org:buyer"), [], "one_owner"],
    ["that is a party cannot verify", buyer, ["buyer"], "one_owner"],
  ])("%s", (_, third, namedAgentIds, expected) => {
    expect(thirdPartyFault(third, [seller, buyer], namedAgentIds)).toBe(expected);
  });

  it("never has an owner in common with a party", () => {
    fc.assert(
      fc.property(affiliations, fc.array(affiliations, { maxLength: 3 }), (third, parties) => {
        fc.pre(parties.some((party) => haveOneOwner(third, party)));
        expect(thirdPartyFault(third, parties, [])).toBe("one_owner");
        expect(thirdPartyFault(third, parties, [third.agentId])).toBe("one_owner");
      }),
    );
  });
});
