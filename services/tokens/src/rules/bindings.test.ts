import { describe, expect, it } from "vitest";
import { type Binding, bindingDenial, isBelow } from "./bindings.ts";

describe("an address", () => {
  it.each([
    ["https://a.example/x", "https://a.example/x", true],
    ["https://a.example/x/y", "https://a.example/x", true],
    ["https://a.example/x", "https://a.example", true],
    ["https://A.example:443/x", "https://a.example/", true],
    ["https://a.example/x/../y", "https://a.example/x", false],
    ["https://a.example/xy", "https://a.example/x", false],
    ["https://a.example.evil.example/x", "https://a.example", false],
    ["http://a.example/x", "https://a.example", false],
    ["https://a.example:8443/x", "https://a.example", false],
    ["https://a.example@evil.example/", "https://a.example", false],
    ["", "https://a.example", false],
    ["https://a.example/x", "not an address", false],
  ])("%s lies at or below %s: %s", (target, audience, expected) => {
    expect(isBelow(target, audience)).toBe(expected);
  });
});

describe("a chain's bindings", () => {
  const bound = (audiences: string[], tenants: string[] = []): Binding => {
    return { audiences, tenants, singleUse: false };
  };
  const [A, B] = ["https://a.example", "https://b.example"];
  const place = { target: "https://a.example/x", tenant: "acme" };

  it.each<[string, Binding[], object, string | undefined]>([
    ["none", [], place, undefined],
    ["one that names the audience", [bound([B, A])], place, undefined],
    ["one that names another", [bound([B])], place, "audience"],
    ["one below that names more than the one above", [bound([B]), bound([A, B])], place, "audience"],
    ["two of which each names it", [bound([A, B]), bound([A])], place, undefined],
    ["one of audiences, and no call to compare", [bound([A])], { target: "" }, "audience"],
    ["one that names the tenant", [bound([], ["acme"])], place, undefined],
    ["one that names another tenant", [bound([], ["other"])], place, "tenant"],
    ["one of tenants, and nobody's call", [bound([], ["acme"])], { tenant: "" }, "tenant"],
  ])("with %s", (_, bindings, at, detail) => {
    expect(bindingDenial(bindings, { ...place, ...at })?.detail).toBe(detail);
  });
});
