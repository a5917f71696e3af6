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
    ["one binding to the audience", [bound([B, A])], place, undefined],
    ["one binding to another audience", [bound([B])], place, "audience"],
    ["a lower binding to more audiences than the higher one", [bound([B]), bound([A, B])], place, "audience"],
    ["two bindings that both contain the audience", [bound([A, B]), bound([A])], place, undefined],
    ["a binding to audiences, without a call", [bound([A])], { target: "" }, "audience"],
    ["one binding to the tenant", [bound([], ["acme"])], place, undefined],
    ["one binding to another tenant", [bound([], ["other"])], place, "tenant"],
    ["a binding to tenants, without a tenant of the call", [bound([], ["acme"])], { tenant: "" }, "tenant"],
  ])("with %s", (_, bindings, at, detail) => {
    expect(bindingDenial(bindings, { ...place, ...at })?.detail).toBe(detail);
  });
});
