import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { containmentBudget, contains } from "./chain.ts";
import { matches, type Path, type Pattern, parsePattern, parseResource } from "./glob.ts";

const pattern = (text: string, namespace = "docs"): Pattern => {
  const parsed = parsePattern(text, namespace);
  return "problem" in parsed ? expect.fail(`${text}: ${parsed.problem}`) : parsed;
};
const match = (text: string, resource: string, namespace = "docs") => {
  const path = parseResource(resource, namespace);
  return !("problem" in path) && matches(pattern(text, namespace), path);
};

describe("matches", () => {
  test.each([
    ["/project/*", "/project/foo", true],
    ["/project/*", "/project/foo/bar", false],
    ["/project/*", "/project", false],
    ["/project/**", "/project/foo/bar/baz", true],
    ["/project/**", "/project", true],
    ["/project/**", "/project-secret", false],
    ["/project/**", "/projectx/foo", false],
    ["/a/**/z", "/a/z", true],
    ["/a/**/z", "/a/b/c/z", true],
    ["/a/**/z", "/a/b/c/z/y", false],
    ["/**/b/**/b", "/a/b/c/b", true],
    ["/**/b/**/b", "/a/b/c", false],
    ["/**", "/", true],
    ["/*", "/", false],
    ["/", "/", true],
    ["exact", "exact", true],
    ["exact", "Exact", false],
    ["g1 leading slash: a/b", "/g1 leading slash: a/b", false],
    ["/a/", "/a", false],
    ["/a", "/a/", false],
    ["/a/**", "/a/b/", false],
    ["/a/**/", "/a/b/", true],
    ["a/*", "/a/b", false],
    ["/a?/[b]", "/ax/b", false],
    ["/a?/[b]", "/a?/[b]", true],
    ["/caf\u00e9", "/cafe\u0301", false],
    ["/100%25", "/100%25", true],
  ])("%s on %s: %s", (text, resource, expected) => {
    expect(match(text, resource)).toBe(expected);
  });

  test.each(["*", "**"])("G5 only the whole pattern %s is universal", (universal) => {
    for (const resource of ["/a/b/c", "a", "/", "/a/", "https:", "*"])
      expect(match(universal, resource)).toBe(true);
    for (const narrow of ["/*", "*/", "*/*", "/**", "**/", "**/*"])
      expect(pattern(narrow).universal).toBe(false);
    expect(match("*/*", "a")).toBe(false);
    expect(match("**/*", "/a")).toBe(false);
  });

  test.each([
    ["https://example.com/*", "https://example.com/a", true],
    ["https://example.com/*", "https://example.com/a/b", false],
    ["https://example.com/**", "https://example.com", true],
    ["https://example.com/**", "https://example.com.evil.org/a", false],
    ["https://example.com/**", "https://example.com@evil.org/a", false],
    ["https://example.com/**", "https://example.com:8443/a", false],
    ["https://example.com/**", "http://example.com/a", false],
    ["https://example.com/**", "HTTPS://example.com/a", false],
    ["https://example.com/", "https://example.com", false],
    ["https://example.com/", "https://example.com/", true],
    ["*", "https://example.com/a", true],
  ])("web and custom namespaces: %s on %s: %s", (text, resource, expected) => {
    expect(match(text, resource, "web")).toBe(expected);
    expect(match(text, resource, "acme:pages")).toBe(expected);
  });

  test("G3 a pattern with many ** matches a long resource fast", () => {
    const long = `/${Array(500).fill("a").join("/")}`;
    const start = performance.now();
    expect(match(`${"/**/a".repeat(80)}/b`, long)).toBe(false);
    expect(performance.now() - start).toBeLessThan(1000);
  });
});

describe("G2 patterns and resources are refused", () => {
  test.each([
    ["", "empty"],
    ["//a", "empty segment"],
    ["//", "empty segment"],
    ["/a//b", "empty segment"],
    ["a//", "empty segment"],
    ["/a/../b", "dot segment"],
    ["/a/.", "dot segment"],
    ["..", "dot segment"],
    ["/a/%2e%2E/b", "forbidden escape"],
    ["/a%2fb", "forbidden escape"],
    ["/a%5Cb", "forbidden escape"],
    ["/a\\b", "forbidden character"],
    ["/a\u0000", "forbidden character"],
    ["/a/.\t./b", "forbidden character"],
    ["/a/.. ", "space at an end"],
    ["\ud800", "lone surrogate"],
    [`/${"a".repeat(1024)}`, "too long"],
  ])("%j: %s", (text, problem) => {
    expect(parsePattern(text, "docs")).toEqual({ problem });
    expect(parseResource(text, "docs")).toEqual({ problem });
    expect(parsePattern(text, "web")).toEqual({ problem });
  });

  test.each(["https:///evil.com/a", "https://", "file:///etc"])("web: %s has no authority", (text) => {
    expect(parseResource(text, "web")).toEqual({ problem: "no authority" });
    expect(parseResource(text, "acme:pages")).toEqual({ problem: "no authority" });
  });

  test("addresses are valid in web and custom namespaces alone", () => {
    expect(parseResource("https://example.com/a", "acme:pages")).toHaveProperty("segments");
    expect(parseResource("https://example.com/a", "docs")).toEqual({ problem: "empty segment" });
  });

  test.each(["/a*", "*.txt", "/a/**b", "***", "https://*/a", "https://*.example.com/"])("%s", (text) => {
    expect(parsePattern(text, "web")).toEqual({ problem: "partial wildcard" });
  });

  test.each(["/project/*", "/project/**", "a*b", "**", "https://*/"])(
    "G6 a request for %s is refused",
    (text) => {
      expect(parseResource(text, "docs")).toHaveProperty("problem");
    },
  );

  test("G6 a request for * needs the universal pattern", () => {
    expect(match("*", "*")).toBe(true);
    expect(match("**", "*")).toBe(true);
    for (const narrow of ["/*", "**/*", "*/**", "a", "/**"]) expect(match(narrow, "*")).toBe(false);
  });
});

describe("contains", () => {
  test.each([
    ["/project/**", "/project/**", true],
    ["/project/**", "/project/a/*", true],
    ["/project/**", "/project", true],
    ["/project/*", "/project/foo", true],
    ["/project/*", "/project/**", false],
    ["/project/*", "/projectx", false],
    ["/project/**", "/project-secret/**", false],
    ["/project/**", "/project-secret", false],
    ["/project/**", "/**", false],
    ["/project/**", "*", false],
    ["*", "/project/**", true],
    ["**", "*", true],
    ["/a/**", "a/**", false],
    ["/a/**", "/a/**/", false],
    ["/**/a/**", "/x/a/y", true],
    ["/**/a/**", "/*/a", true],
    ["/**/a", "/a/**/a", true],
    ["/a/**/a", "/**/a", false],
    ["/*/**", "/**/*", true],
    ["/**/*", "/*/**", true],
    ["/**/*/*", "/*/**", false],
    ["/*/**", "/**", false],
    ["*/**", "**/**/b", true],
    ["*/**", "**/**", true],
    ["*/**/", "**/", true],
    ["/*/**/", "/**/", true],
    ["/**/b/*/*", "/**/b/**/b/*/*", true],
  ])("G1 G4 %s contains %s: %s", (parent, child, expected) => {
    expect(contains(pattern(parent), pattern(child))).toBe(expected);
  });

  test("origins are compared exactly", () => {
    for (const namespace of ["web", "acme:pages"]) {
      const within = (parent: string, child: string) =>
        contains(pattern(parent, namespace), pattern(child, namespace));
      expect(within("https://a.com/**", "https://a.com/b/*")).toBe(true);
      expect(within("https://a.com/**", "https://a.com.evil.org/b")).toBe(false);
      expect(within("https://a.com/**", "http://a.com/b")).toBe(false);
    }
  });

  test("G4 an exhausted budget gives no, and soon", () => {
    const hard = pattern(`/**/a${"/*".repeat(400)}`);
    const other = pattern("/**/a".repeat(100));
    const start = performance.now();
    const budget = containmentBudget();
    expect(contains(hard, other, budget)).toBe(false);
    expect(budget.remainingSteps).toBeLessThan(0);
    expect(performance.now() - start).toBeLessThan(2000);
    expect(contains(pattern("/a/*"), pattern("/a/b"), { remainingSteps: 1 })).toBe(false);
  });

  const segment = fc.constantFrom("a", "b", "*", "**");
  const anyPattern = fc
    .record({ segments: fc.array(segment, { maxLength: 5 }), leading: fc.boolean(), trailing: fc.boolean() })
    .map(({ segments, leading, trailing }) => {
      if (segments.length === 0) return "/";
      return (leading ? "/" : "") + segments.join("/") + (trailing ? "/" : "");
    });

  test("G4 property: agrees with a brute-force search, in both directions", () => {
    fc.assert(
      fc.property(anyPattern, anyPattern, (parent, child) => {
        const [outer, inner] = [pattern(parent), pattern(child)];
        const counterExample = RESOURCES.find((r) => matches(inner, r) && !matches(outer, r));
        expect(contains(outer, inner)).toBe(counterExample === undefined);
      }),
      { numRuns: 400 },
    );
  });

  test("property: containment is transitive and reflexive", () => {
    fc.assert(
      fc.property(anyPattern, anyPattern, anyPattern, (a, b, c) => {
        expect(contains(pattern(a), pattern(a))).toBe(true);
        if (contains(pattern(a), pattern(b)) && contains(pattern(b), pattern(c))) {
          expect(contains(pattern(a), pattern(c))).toBe(true);
        }
      }),
    );
  });
});

/** Every resource of up to 6 segments over three names; `z` represents all names that no pattern has. */
const RESOURCES: Path[] = (() => {
  const lists: string[][] = [[]];
  for (let i = 0; i < lists.length; i++) {
    const list = lists[i] as string[];
    if (list.length < 6) for (const name of ["a", "b", "z"]) lists.push([...list, name]);
  }
  return lists.flatMap((segments) => {
    if (segments.length === 0) return [{ segments, leading: true, trailing: false }];
    return [true, false].flatMap((leading) =>
      [true, false].map((trailing) => ({ segments, leading, trailing })),
    );
  });
})();
