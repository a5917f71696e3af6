import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AttenuateParams, attenuateToken } from "../attenuate.ts";
import type { VerificationContext } from "../context.ts";
import { serialiseToken } from "../serialise.ts";
import {
  alice,
  bob,
  carol,
  context,
  encode,
  encodeText,
  engine,
  id,
  NOW,
  rootToken,
  sign,
} from "../testing/fixtures.ts";
import { link } from "../testing/forge.ts";
import { formatTime } from "../time.ts";
import type { SignedJSONToken } from "../types.ts";
import { VerifiedPrefixes } from "../verified-prefixes.ts";
import { type VerifyResult, verifyToken } from "../verify.ts";
import { readQuickly } from "./read.ts";

const STRICT = { ids: "strict" } as const;
/** One cache for all verifications in this file, so that a wrong entry changes the result of a later verification. */
const verified = new VerifiedPrefixes(64);

/**
 * Verifies a token with the reference reader and the fast one, with and without a cache. Requires equal results, and
 * returns the result.
 */
function verify(input: unknown, ctx: VerificationContext = context()): VerifyResult {
  const result = verifyToken(engine, input as string, ctx, { path: "reference" });
  expect(verifyToken(engine, input as string, ctx)).toEqual(result);
  expect(verifyToken(engine, input as string, ctx, { verified })).toEqual(result);
  expect(verifyToken(engine, input as string, ctx, { verified, path: "reference" })).toEqual(result);
  return result;
}

const honest: SignedJSONToken[] = [rootToken()];
for (const [i, keypair] of [alice, bob].entries()) {
  const more = [
    {
      delegatee: id(bob),
      allowedCapabilities: [{ namespace: "docs", action: "read", resource: "/project/a/**" }],
    },
    { delegatee: id(carol), maxBudgetMicrocents: 9, expiresAt: formatTime(NOW + 60_000), maxChainDepth: 0 },
  ][i] as AttenuateParams;
  honest.push(attenuateToken(engine, honest[i] as SignedJSONToken, more, keypair));
}
const texts = honest.map((token) => serialiseToken(token).token);
const jsons = texts.map((text) => Buffer.from(text, "base64url").toString());

describe("the fast path and the reference path", () => {
  test.each(texts)("read a valid token fast, with equal results", (text) => {
    expect(readQuickly(text, STRICT)).toBeDefined();
    expect(verify(text).ok).toBe(true);
  });

  test("property: agree on chains with any limits and any names", () => {
    const resource = fc.oneof(
      fc.constantFrom(
        "*",
        "**",
        "/a/**",
        "/a/*",
        "/a/b",
        "/a/../b",
        "/a*",
        "/caf\u00e9/*",
        'a"b',
        "a\\b",
        "/ ",
        "",
      ),
      fc.constantFrom("https://example.com/**", "https:///x", "\ud800", `/${"a".repeat(1030)}`, "/\u007f"),
    );
    const capability = fc.record({
      namespace: fc.constantFrom("docs", "web", "docs", "acme:db", "DOCS", "*", "x".repeat(65)),
      action: fc.constantFrom("read", "fetch", "read", "\u212a", ""),
      resource,
    });
    const capabilities = fc.array(capability, { maxLength: 3 });
    const time = fc.oneof(
      fc.constantFrom(-1, 0, 1, 999, 3_600_000).map((ms) => formatTime(NOW + ms)),
      fc.constantFrom("2026-02-30T00:00:00Z", "2026-02-17T12:00:05Z", "zzzz", "2026-02-17t12:00:00Z"),
    );
    const count = fc.constantFrom(
      0,
      1,
      1,
      2,
      2,
      5,
      900,
      1000,
      2 ** 53 - 1,
      2 ** 53,
      -1,
      -0,
      0.5,
      1e21,
      "1",
      null,
    );
    const limits = { maxBudgetMicrocents: count, maxChainDepth: count, expiresAt: time };
    const members = some({
      ...limits,
      capabilities,
      chainDepth: fc.constantFrom(0, 1),
      contractId: fc.constantFrom("ct_a1b2c3d4e5f6", "ct_0", "x"),
      delegationId: fc.constantFrom("del_000000000002", "del_000000000000", "del_1"),
      parentDelegationId: fc.constantFrom("del_000000000000", "del_000000000009"),
      delegatee: fc.constantFrom(id(alice), id(bob), "A".repeat(43), `${"A".repeat(42)}B`),
      unknown: fc.constant(1),
    });
    const link_ = some({ ...limits, allowedCapabilities: fc.oneof(capabilities, fc.constant(null)) });
    const ctx = fc.record({
      now: fc.constantFrom(NOW + 1, NOW + 2, NOW + 500, NOW + 7_200_000, Number.NaN),
      spentMicrocents: fc.constantFrom(0, 0, 5, 1000),
      rules: fc.constantFrom(STRICT, { ids: "relaxed" as const }),
      request: fc.record({
        namespace: fc.constantFrom("docs", "web"),
        action: fc.constant("read"),
        resource,
      }),
    });
    const types = new Map<string, number>();
    fc.assert(
      fc.property(
        members,
        fc.array(link_, { maxLength: 3 }),
        ctx,
        fc.boolean(),
        (more, links, contextFields, bare) => {
          const authority = { ...honest[0]?.authority, ...more };
          const value = unsafely(() =>
            encode(
              sign(
                authority,
                links.map((one, i) => link(i, one)),
              ),
            ),
          );
          if (value === undefined) return;
          const { request: requestedCapability, ...rest } = contextFields;
          const result = verify(value, context(bare ? rest : { ...rest, request: requestedCapability }));
          const type = result.ok ? "ok" : result.denial.type;
          types.set(type, (types.get(type) ?? 0) + 1);
        },
      ),
      { numRuns: 1500 },
    );
    expect([...types.keys()]).toEqual(expect.arrayContaining(["ok", "malformed_token", "expired"]));
    expect(types.size).toBeGreaterThan(6);
  });

  const fragment = fc.constantFrom(
    ...[
      '"',
      "\\",
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      " ",
      "0",
      "00",
      "-",
      "e1",
      ".0",
      "\\u0061",
      "\u00e9",
      "\n",
      "null",
    ],
    ...[
      '"covers":0',
      ',"expiresAt":"2026-02-17T12:00:01.000Z"',
      '{"action":"read",',
      '"authority"',
      "\u0000",
    ],
  );
  const at = fc.nat(Math.max(...jsons.map(({ length }) => length)));

  test("property: agree on a valid token's JSON with random insertions and removals", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...jsons),
        at,
        fc.nat(3),
        fragment,
        (json, start, removedCount, inserted) => {
          verify(encodeText(json.slice(0, start) + inserted + json.slice(start + removedCount)));
        },
      ),
      { numRuns: 1500 },
    );
  });

  test("property: agree on members that are reordered or repeated", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...jsons),
        fc.infiniteStream(fc.boolean()),
        fc.nat(40),
        (json, swaps, twice) => {
          let n = 0;
          const reordered = JSON.stringify(JSON.parse(json), (_, value) => {
            if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
            const entries = Object.entries(value);
            return Object.fromEntries(swaps.next().value ? entries : entries.reverse());
          });
          const repeated = json.replace(/"(\w+)":("[^"]*"|\d+)/g, (all) =>
            n++ === twice ? `${all},${all}` : all,
          );
          verify(encodeText(reordered));
          verify(encodeText(repeated));
        },
      ),
      { numRuns: 200 },
    );
  });

  test("property: agree on its text with random insertions and removals", () => {
    const insertion = fc.constantFrom(
      "",
      "A",
      "B",
      "_",
      "-",
      "+",
      "/",
      "=",
      "==",
      " ",
      "\n",
      "\u0141",
      "\u0000",
      "AA",
      "AAA",
    );
    fc.assert(
      fc.property(fc.constantFrom(...texts), at, fc.nat(4), insertion, (text, start, removedCount, more) => {
        verify(text.slice(0, start) + more + text.slice(start + removedCount));
        verify(text.slice(0, text.length - removedCount) + more);
      }),
      { numRuns: 1500 },
    );
  });

  test("property: agree on recombined parts of valid tokens", () => {
    const part = fc.nat(2).map((n) => honest[n] as SignedJSONToken);
    fc.assert(
      fc.property(part, part, part, fc.nat(3), fc.nat(2), (a, b, c, cut, turn) => {
        const signatures = [...c.signatures.slice(turn), ...c.signatures.slice(0, turn)].slice(0, cut + 1);
        verify(encode({ ...a, attenuations: b.attenuations, signatures }));
        verify(encode({ ...a, attenuations: b.attenuations.slice(0, cut), signatures: c.signatures }));
      }),
    );
  });

  test("agree on base64url with its two special characters", () => {
    for (const resource of ["/>>>/???", "/a?b", "/~~~~", "/a>b/>>"]) {
      const text = serialiseToken(
        rootToken({ capabilities: [{ namespace: "docs", action: "read", resource }] }),
      ).token;
      expect(readQuickly(text, STRICT)).toBeDefined();
      expect(verify(text).ok).toBe(true);
      verify(text.replaceAll("-", "+").replaceAll("_", "/"));
      verify(text.replace("-", "+"));
      verify(text.replace("_", "/"));
    }
  });

  const numbers = jsons.flatMap((json) =>
    [...json.matchAll(/:(\d+)/g)].map(({ index }) => [json, index] as const),
  );

  test.each([
    "00",
    "01",
    "0",
    "1.0",
    "1e1",
    "1E1",
    "-0",
    "-1",
    "+1",
    "",
    " 1",
    "1 ",
    "0x1",
    '"1"',
    "null",
    "1,",
  ])("agree on %j in place of each number", (spelling) => {
    expect(numbers.length).toBeGreaterThan(10);
    for (const [json, at] of numbers) {
      verify(encodeText(json.slice(0, at + 1) + spelling + json.slice(at + 1).replace(/^\d+/, "")));
    }
  });

  test.each([
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "99999999999999999",
    "0".repeat(17),
  ])("agree on %s in place of each number", (large) => {
    for (const [json, at] of numbers) {
      verify(encodeText(json.slice(0, at + 1) + large + json.slice(at + 1).replace(/^\d+/, "")));
    }
  });

  test("agree on every last character, at any length", () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ ";
    const tails = ["/a", "/ab", "/abc"].map((resource) => {
      const capabilities = [{ namespace: "docs", action: "read", resource }];
      const { token } = serialiseToken(rootToken({ capabilities }));
      const accepted = [...alphabet].filter((last) => verify(token.slice(0, -1) + last).ok);
      expect(accepted).toEqual([token.at(-1)]);
      return token.length % 4;
    });
    expect(tails.sort()).toEqual([0, 2, 3]);
  });

  test("agree on a text that is a pattern in only one namespace", () => {
    const resource = "https://only-in-web.example/**";
    for (const namespace of ["web", "docs", "web", "docs"]) {
      const capabilities = [{ namespace, action: "read", resource }];
      const result = verify(encode(sign({ ...honest[0]?.authority, capabilities })));
      expect(result.ok).toBe(namespace === "web");
    }
  });

  test.each([32, 33, 34, 35])("agree on %i signatures", (count) => {
    const [token] = honest as [SignedJSONToken];
    verify(encode({ ...token, signatures: new Array(count).fill(token.signatures[0]) }));
  });

  test.each([63, 64, 65])("agree on %i capabilities", (count) => {
    const capabilities = new Array(count).fill({ namespace: "docs", action: "read", resource: "/a" });
    expect(verify(encode(sign({ ...honest[0]?.authority, capabilities }))).ok).toBe(count <= 64);
  });

  test("make the same calls to the context in the same order", () => {
    const callsByPath = ["reference", "fast"].map((path) => {
      const calls: unknown[] = [];
      const revocations = {
        isRevoked: (...args: unknown[]) => calls.push(["revoked", ...args]) < 0,
        isStale: (now: number) => calls.push(["stale", now]) < 0,
      };
      const spentMicrocents = (block: string) => calls.push(["spent", block]) * 0;
      const ctx = context({ revocations, spentMicrocents });
      expect(verifyToken(engine, texts[2] as string, ctx, { path: path as "fast" }).ok).toBe(true);
      return calls;
    });
    expect(callsByPath[0]).toEqual(callsByPath[1]);
    expect(callsByPath[0]).toHaveLength(7);
  });
});

/** Returns new values for at most two of the given members. */
function some(members: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Record<string, unknown>> {
  const one = fc.oneof(...Object.entries(members).map(([name, value]) => fc.tuple(fc.constant(name), value)));
  return fc.array(one, { maxLength: 2 }).map((entries) => Object.fromEntries(entries));
}

function unsafely<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined; // The value has no JSON form, so it cannot be sent.
  }
}
