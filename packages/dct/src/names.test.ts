import { describe, expect, test } from "vitest";
import { createToken } from "./create.ts";
import { isKnownCapability, NAMESPACES, NamespaceRegistry } from "./names.ts";
import { engine, NOW, params, root } from "./testing/fixtures.ts";

describe("registry of namespaces (DelegateOS 12)", () => {
  test("knows the text's namespaces and every custom one, like isKnownCapability", () => {
    const registry = new NamespaceRegistry();
    for (const namespace of [...NAMESPACES.keys(), "acme:db", "acme", "*", "__proto__", "constructor"]) {
      for (const action of ["read", "search", "query", "toString", "*", ""]) {
        expect(registry.knows(namespace, action)).toBe(isKnownCapability(namespace, action));
      }
    }
    expect(registry.list().map(({ namespace }) => namespace)).toEqual([
      "web",
      "docs",
      "code",
      "llm",
      "data",
      "compute",
    ]);
  });

  test("a registered namespace has its actions and no others", () => {
    const registry = new NamespaceRegistry();
    expect(registry.knows("acme:db", "drop")).toBe(true);
    registry.register("acme:db", ["select"]);
    expect(registry.knows("acme:db", "select")).toBe(true);
    expect(registry.knows("acme:db", "drop")).toBe(false);
    expect(registry.knows("acme:mail", "send")).toBe(true);
    expect(registry.list().at(-1)).toEqual({ namespace: "acme:db", actions: ["select"] });
    expect(new NamespaceRegistry().knows("acme:db", "drop")).toBe(true);
  });

  test("in the mode of registered namespaces, no other custom one is known", () => {
    const registry = new NamespaceRegistry("registered");
    registry.register("acme:db", ["select"]);
    expect(registry.knows("acme:db", "select")).toBe(true);
    expect(registry.knows("acme:mail", "send")).toBe(false);
    expect(registry.knows("web", "search")).toBe(true);
  });

  test.each<[string, string[]]>([
    ["web", ["search"]],
    ["acme:db", ["again"]],
    ["acme", ["read"]],
    ["Acme:mail", ["send"]],
    ["acme:", ["send"]],
    ["acme:mail", []],
    ["acme:mail", ["*"]],
    ["acme:mail", ["send:all"]],
    ["*", ["read"]],
  ])("refuses %s with %j", (namespace, actions) => {
    const registry = new NamespaceRegistry();
    registry.register("acme:db", ["select"]);
    expect(() => registry.register(namespace, actions)).toThrow(RangeError);
  });

  test("is used when tokens are created", () => {
    const namespaces = new NamespaceRegistry("registered");
    const capabilities = [{ namespace: "acme:db", action: "select", resource: "*" }];
    const mint = () => createToken(engine, { ...params, capabilities }, root, { now: NOW, namespaces });
    expect(mint).toThrow(/neither registered nor custom/);
    namespaces.register("acme:db", ["select"]);
    expect(mint().authority.capabilities).toEqual(capabilities);
  });
});
