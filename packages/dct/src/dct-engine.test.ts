import { describe, expect, test } from "vitest";
import { combineEngines, createSjtEngine, type DCTEngine } from "./dct-engine.ts";
import { TokenError } from "./denial.ts";
import type { TokenInput } from "./serialise.ts";
import { alice, bob, context, engine, id, NOW, params, root } from "./testing/fixtures.ts";
import { SJT_FORMAT } from "./types.ts";
import { VerifiedPrefixes } from "./verified-prefixes.ts";

const sjt = createSjtEngine(engine);

/** Converts a token to the second format of these tests, and back: the token's text reversed. */
const turn = (token: TokenInput): TokenInput => [...(token as { token: string }).token].reverse().join("");
const turned: DCTEngine = {
  format: "turned",
  create: (...args) => ({ token: turn(sjt.create(...args)), format: "turned" }) as never,
  attenuate: (token, ...rest) =>
    ({ token: turn(sjt.attenuate(turn(token), ...rest)), format: "turned" }) as never,
  parse: (token) => sjt.parse(turn(token as TokenInput)),
  revocationIds: (token) => sjt.revocationIds(turn(token)),
  verify: (token, ctx) => sjt.verify(turn(token), ctx),
};

describe("engines of several formats (DelegateOS 14.4)", () => {
  const both = combineEngines(sjt, turned);

  test.each([sjt, turned])("every function accepts a token of $format", (one) => {
    const created = one.create(params, root, { now: NOW });
    const token = both.attenuate(created, { delegatee: id(bob) }, alice);
    expect(token.format).toBe(one.format);
    expect(both.revocationIds(token)).toEqual(one.revocationIds(token));
    expect(both.parse(token)).toMatchObject({ ok: true, token: { attenuations: [{ delegatee: id(bob) }] } });
    expect(both.verify(token, context())).toMatchObject({ ok: true, scope: { holder: id(bob) } });
  });

  test("new tokens, and texts without a format, have the first engine's format", () => {
    const created = both.create(params, root, { now: NOW });
    expect(created.format).toBe(SJT_FORMAT);
    expect(both.verify(created.token, context()).ok).toBe(true);
    expect(combineEngines(turned, sjt).create(params, root, { now: NOW }).format).toBe("turned");
  });

  test.each([{ token: "x", format: "other" }, {}, { format: "__proto__" }, { format: null }, null, 7])(
    "K11 %j is an unknown format",
    (junk) => {
      const token = junk as unknown as TokenInput;
      expect(both.verify(token, context())).toMatchObject({ ok: false, denial: { type: "malformed_token" } });
      expect(both.parse(token)).toMatchObject({ ok: false, denial: { type: "malformed_token" } });
      expect(() => both.revocationIds(token)).toThrow(TokenError);
    },
  );

  test("an object with throwing accessors, and an engine that throws, give a denial", () => {
    const trap = new Proxy(
      {},
      {
        get: () => {
          throw new Error("touched");
        },
      },
    ) as TokenInput;
    expect(both.verify(trap, context()).ok).toBe(false);
    expect(both.parse(trap).ok).toBe(false);
  });

  test("two engines of one format are refused", () => {
    expect(() => combineEngines(sjt, turned, createSjtEngine(engine))).toThrow(RangeError);
  });
});

test("an engine verifies by its options", () => {
  const verified = new VerifiedPrefixes();
  const one = createSjtEngine(engine, { verified });
  expect(one.verify(one.create(params, root, { now: NOW }), context()).ok).toBe(true);
  expect(verified.size).toBe(1);
});
