import { AuthoritySource } from "@depute/contracts/depute/registry/v1/authority_service_pb";
import { describe, expect, test } from "vitest";
import { authorityOf, effective, type Grant, holdingOf, keyOf, standingOf } from "./authority.ts";

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

test("a first registration lapses beside a grant or a proof", () => {
  const first = by("squatter", FIRST);
  expect(effective([first])).toEqual([first]);
  for (const source of [GRANTED, PROVEN]) {
    const grants = [first, by("owner", source)];
    expect(holdingOf(grants, "squatter")).toBeUndefined();
    expect(holdingOf(grants, "owner")).toEqual(by("owner", source));
  }
  expect(holdingOf([first], "owner")).toBeUndefined();
});

test.each([
  ["who holds it", [by("me", FIRST)], "first", false, "holds"],
  ["who holds it, whatever the policy", [by("me", GRANTED)], "granted", true, "holds"],
  ["a stranger", [by("other", FIRST)], "first", false, "taken"],
  [
    "who was first, once another was granted it",
    [by("me", FIRST), by("other", GRANTED)],
    "first",
    false,
    "taken",
  ],
  ["the first", [], "first", false, "first"],
  ["the first, where grants are asked for", [], "granted", false, "ungranted"],
  ["the first, where the domain speaks for itself", [], "first", true, "ungranted"],
] as const)("%s", (_name, grants, policy, isProvable, standing) => {
  expect(standingOf(grants, "me", policy, isProvable)).toBe(standing);
});

test("an agent's key is its principal, else the Ed25519 key of its card", () => {
  const card = (crv: string) => ({ signingPublicKey: { crv, x: "of the card" } });
  const of = (principal: string, about?: unknown) =>
    keyOf({ principal, card: about } as Parameters<typeof keyOf>[0]);
  expect([of("mine", card("Ed25519")), of("", card("Ed25519")), of("", card("P-256")), of("")]).toEqual([
    "mine",
    "of the card",
    "",
    "",
  ]);
});
