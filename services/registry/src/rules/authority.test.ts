import { AuthoritySource } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { describe, expect, test } from "vitest";
import {
  aspKeyOf,
  authorityOf,
  authorityStanding,
  findGrant,
  type Grant,
  grantsInForce,
} from "./authority.ts";

const { GRANTED, PROVEN, FIRST } = AuthoritySource;
const by = (principal: string, source: AuthoritySource): Grant => ({ principal, source });

describe("the authority of a URI", () => {
  test.each([
    ["agent://example.com/sales/beta", "example.com"],
    ["agent://a/b", "a"],
    ["agent://xn--bcher-kva.example/b", "xn--bcher-kva.example"],
    ["agent://a-b.c1/d/e/f", "a-b.c1"],
  ])("%s", (uri, authority) => {
    expect(authorityOf(uri)).toBe(authority);
  });

  test.each([
    "agent://Example.com/b",
    "agent://example.com./b",
    "agent://.example.com/b",
    "agent://a..b/c",
    "agent://-a/b",
    "agent://a-/b",
    `agent://${"a".repeat(64)}/b`,
    `agent://${Array(64).fill("aaa").join(".")}/b`,
    "agent://example.com",
    "agent://example.com/",
    "agent:///b",
    "https://example.com/b",
    "",
  ])("%s has none", (uri) => {
    expect(authorityOf(uri)).toBeUndefined();
  });
});

test("a grant or a proof supersedes a first registration", () => {
  const first = by("squatter", FIRST);
  expect(grantsInForce([first])).toEqual([first]);
  for (const source of [GRANTED, PROVEN]) {
    const grants = [first, by("owner", source)];
    expect(findGrant(grants, "squatter")).toBeUndefined();
    expect(findGrant(grants, "owner")).toEqual(by("owner", source));
  }
  expect(findGrant([first], "owner")).toBeUndefined();
});

test.each([
  ["its holder", [by("me", FIRST)], "first", false, "holds"],
  ["the holder, under any policy", [by("me", GRANTED)], "granted", true, "holds"],
  ["a stranger", [by("other", FIRST)], "first", false, "taken"],
  [
    "the first principal after a grant to another",
    [by("me", FIRST), by("other", GRANTED)],
    "first",
    false,
    "taken",
  ],
  ["the first principal", [], "first", false, "first"],
  ["the first principal, if a grant is required", [], "granted", false, "ungranted"],
  ["the first principal, if the domain can prove its key", [], "first", true, "ungranted"],
] as const)("%s", (_name, grants, policy, isProvable, standing) => {
  expect(authorityStanding(grants, "me", policy, isProvable)).toBe(standing);
});

test("an agent's key is its principal, else the Ed25519 key of its card", () => {
  const card = (crv: string) => ({ signingPublicKey: { crv, x: "of the card" } });
  const claim = (principal: string, claims?: unknown) =>
    aspKeyOf({ principal, card: claims } as Parameters<typeof aspKeyOf>[0]);
  expect([
    claim("mine", card("Ed25519")),
    claim("", card("Ed25519")),
    claim("", card("P-256")),
    claim(""),
  ]).toEqual(["mine", "of the card", "", ""]);
});
