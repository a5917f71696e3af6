import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { resourceOf } from "./resource.ts";
import type { CallRule, ResourceForm } from "./tool-map.ts";

const rule = (form: ResourceForm, namespace = "docs", more: object = {}): CallRule => ({
  namespace,
  action: "read",
  resource: { kind: "argument", pointers: ["/at"], form, ...more },
  cost: { most: 0 },
  checkArguments: true,
  limits: {},
});
const found = (form: ResourceForm, at: unknown, namespace?: string) => {
  const result = resourceOf(rule(form, namespace), { at });
  if (!result.ok) return undefined;
  expect(result.resources).toHaveLength(1);
  return result.resources[0];
};

describe("the resource that an argument names", () => {
  test.each<[ResourceForm, string, string]>([
    ["text", "a/b", "a/b"],
    ["path", "/a/b", "/a/b"],
    ["path", "/a/b/", "/a/b"],
    ["path", "/", "/"],
    ["path", "/a/.hidden", "/a/.hidden"],
    ["path", "/a/it's", "/a/it's"],
    ["uri", "file:///a/b", "/a/b"],
    ["uri", "note://a/b", "note/a/b"],
    ["uri", "demo:///b", "demo/b"],
  ])("in form %s, %j is %j", (form, at, resource) => {
    expect(found(form, at)).toBe(resource);
  });

  test("in the namespace web an address is used unchanged", () => {
    expect(found("uri", "https://example.com/a?b", "web")).toBe("https://example.com/a?b");
    expect(found("uri", "https://user@example.com/", "web")).toBeUndefined();
  });

  test.each<[ResourceForm, unknown]>([
    ["path", "a/b"],
    ["path", "/a/../b"],
    ["path", "/a/.."],
    ["path", "/a/./b"],
    ["path", "/a//b"],
    ["path", "/a\\b"],
    ["path", '/a/.."'],
    ["path", "/a/..'"],
    ["path", "/a/..\u2028"],
    ["path", "/a\n"],
    ["path", "/a/\u2025/b"],
    ["path", "/a/*"],
    ["uri", "/a/b"],
    ["uri", "file://host/a"],
    ["uri", "file:///a/../b"],
    ["uri", "note://a?x"],
    ["uri", "note://a#x"],
    ["text", "*"],
    ["text", 7],
    ["text", null],
  ])("in form %s, %j is not a resource", (form, at) => {
    expect(found(form, at)).toBeUndefined();
  });

  test("a missing argument is every resource, or the configured default", () => {
    expect(resourceOf(rule("text"), {})).toMatchObject({ ok: true, resources: ["*"] });
    expect(resourceOf(rule("text", "docs", { absent: "usual" }), {})).toMatchObject({
      resources: ["usual"],
    });
  });

  test("several resources count once each; too many to check one by one count as every resource", () => {
    const resources = (at: unknown, form: ResourceForm = "path") => {
      const result = resourceOf(rule(form), { at });
      return result.ok ? result.resources : result.detail;
    };
    expect(resources(["/a", "/b/", "/a", "/b"])).toEqual(["/a", "/b"]);
    expect(resources(["/a", "/a/../b"])).toBe(
      "the path must not contain //, the segments . and .., backslashes or control characters",
    );
    expect(resources(["/a", 7])).toBe("the argument that names the resource is not a text");
    expect(resources([])).toEqual(["*"]);
    const many = Array.from({ length: 65 }, (_, n) => `/${n}`);
    expect(resources(many.slice(1))).toEqual(many.slice(1));
    expect(resources(many)).toEqual(["*"]);
    const two = { kind: "argument", pointers: ["/from", "/to"], form: "path" } as const;
    const call = { ...rule("path"), resource: two };
    expect(resourceOf(call, { from: "/a", to: "/b" })).toMatchObject({ resources: ["/a", "/b"] });
    expect(resourceOf(call, { from: "/a" })).toMatchObject({ resources: ["*"] });
  });

  test("every input gives a resource without a wildcard, every resource, or none", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom<ResourceForm>("text", "path", "uri"), (at, form) => {
        const result = resourceOf(rule(form), { at });
        const isNone = (resource: string) => !resource.includes("*");
        return !result.ok || result.resources.every(isNone) || result.resources.join() === "*";
      }),
    );
  });

  test("an accepted path leads to the named place, even if a server trims it", () => {
    const part = fc.constantFrom("a", "..", ".", "~", '"', "'", " ", "\u00a0", "", "\\", "b");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const text = `/docs/${parts.join("/")}${parts.join("")}`;
        const resource = found("path", text);
        if (resource === undefined) return true;
        // Converts a path in the same way as the official filesystem server.
        const read = text
          .trim()
          .replace(/^["']|["']$/g, "")
          .replace(/\/+/g, "/");
        return new URL(read, "file:///").pathname.startsWith("/docs");
      }),
    );
  });
});
