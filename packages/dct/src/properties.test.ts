import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attenuateToken } from "./attenuate.ts";
import { containmentBudget, isSubset } from "./chain.ts";
import { TokenError } from "./denial.ts";
import { portableEngine } from "./engine/portable.ts";
import { serialiseToken } from "./serialise.ts";
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
  root,
  rootToken,
  sign,
} from "./testing/fixtures.ts";
import { link } from "./testing/forge.ts";
import { formatTime } from "./time.ts";
import type { Capability, Keypair, SignedJSONToken } from "./types.ts";
import { verifyToken } from "./verify.ts";

const segment = fc.constantFrom("a", "b", "*", "**");
const resourceOf = (unit: fc.Arbitrary<string>) => {
  return fc.array(unit, { minLength: 1, maxLength: 4 }).map((segments) => `/${segments.join("/")}`);
};
const capability: fc.Arbitrary<Capability> = fc.record({
  namespace: fc.constantFrom("docs", "data"),
  action: fc.constant("delete"),
  resource: fc.oneof(resourceOf(segment), fc.constantFrom("*", "**")),
});
const request = fc.record({
  namespace: fc.constantFrom("docs", "data"),
  action: fc.constant("delete"),
  resource: fc.oneof(resourceOf(fc.constantFrom("a", "b", "c")), fc.constant("*")),
});
/**
 * Random values of an attenuation, which may grant less or more than the block above. The values vary little,
 * so that both cases are frequent.
 */
const step = fc.record(
  {
    allowedCapabilities: fc.array(capability, { maxLength: 3 }),
    maxBudgetMicrocents: fc.constantFrom(0, 5, 10, 2000),
    expiresAt: fc.constantFrom(-1, 10, 20, 9_000_000).map((ms) => formatTime(NOW + ms)),
    maxChainDepth: fc.nat(4),
  },
  { requiredKeys: [] },
);

describe("no chain of attenuations allows what its parent denies", () => {
  test("property: in chains signed by test keys, with arbitrary limits", () => {
    let valid = 0;
    const root_ = fc.array(capability, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(
        root_,
        fc.array(step, { minLength: 1, maxLength: 3 }),
        request,
        fc.nat(30),
        fc.nat(12),
        (capabilities, steps, requestedCapability, later, spent) => {
          const { authority } = rootToken({ capabilities });
          const blocks = steps.map((more, i) => link(i, more));
          const ctx = context({ now: NOW + later, spentMicrocents: spent, request: requestedCapability });
          let parentAllowed = true;
          let parentDepth = Number.POSITIVE_INFINITY;
          for (let i = 0; i <= blocks.length; i++) {
            const result = verifyToken(engine, encode(sign(authority, blocks.slice(0, i))), ctx);
            if (result.ok) {
              valid++;
              expect(parentAllowed).toBe(true);
              const remaining = result.scope.maxChainDepth - result.scope.chainDepth;
              expect(remaining).toBeLessThan(parentDepth);
              parentDepth = remaining;
            }
            parentAllowed = result.ok;
          }
        },
      ),
      { numRuns: 400 },
    );
    expect(valid).toBeGreaterThan(50);
  });

  test("property: a created attenuation verifies, and a refused one does not", () => {
    const counts = { made: 0, refused: 0 };
    fc.assert(
      fc.property(fc.array(capability, { minLength: 1, maxLength: 3 }), step, (capabilities, more) => {
        const parent = rootToken({ capabilities });
        const ctx = context({ now: NOW - 1 });
        try {
          const child = attenuateToken(engine, parent, { delegatee: id(bob), ...more }, alice);
          counts.made++;
          const result = verifyToken(engine, serialiseToken(child), ctx);
          expect(result.ok ? "ok" : result.denial.type).toMatch(
            more.maxBudgetMicrocents === 0 ? /^budget_exceeded$/ : /^ok$/,
          );
        } catch (error) {
          if (!(error instanceof TokenError)) throw error;
          counts.refused++;
          const forced = verifyToken(engine, encode(sign(parent.authority, [link(0, more)])), ctx);
          expect(forced).toMatchObject({ ok: false, denial: { type: error.denial.type } });
        }
      }),
      { numRuns: 300 },
    );
    expect(counts.made).toBeGreaterThan(10);
    expect(counts.refused).toBeGreaterThan(10);
  });

  test("property: a subset grants no more than the whole", () => {
    fc.assert(
      fc.property(capability, capability, request, (child, parent, requestedCapability) => {
        fc.pre(isSubset(child, parent, containmentBudget()));
        const granted = (one: Capability) => {
          return verifyToken(
            engine,
            serialiseToken(rootToken({ capabilities: [one] })),
            context({ request: requestedCapability }),
          ).ok;
        };
        if (granted(child)) expect(granted(parent)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });
});

describe("a changed token is refused", () => {
  const honest = attenuateToken(
    engine,
    attenuateToken(engine, rootToken(), { delegatee: id(bob), maxBudgetMicrocents: 500 }, alice),
    { delegatee: id(carol), allowedCapabilities: [] },
    bob,
  );
  const text = serialiseToken(honest).token;
  const json = Buffer.from(text, "base64url");

  test("property: with one flipped bit, and equal answers of both engines", () => {
    expect(verifyToken(engine, text, context()).ok).toBe(true);
    fc.assert(
      fc.property(fc.nat(json.length * 8 - 1), (bit) => {
        const changed = Buffer.from(json);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        const result = verifyToken(engine, changed.toString("base64url"), context());
        expect(result.ok).toBe(false);
        if (bit % 8 === 0)
          expect(verifyToken(portableEngine, changed.toString("base64url"), context())).toEqual(result);
      }),
      { numRuns: 300 },
    );
  });

  test("property: with one character of its text removed, added or replaced", () => {
    const change = fc.constantFrom("", "A", "z", "_", "=", " ", "\n", "\u0000", "+");
    fc.assert(
      fc.property(fc.nat(text.length - 1), fc.nat(1), change, (at, removed, inserted) => {
        const changed = text.slice(0, at) + inserted + text.slice(at + removed);
        fc.pre(changed !== text);
        expect(verifyToken(engine, changed, context()).ok).toBe(false);
      }),
      { numRuns: 300 },
    );
  });

  test("property: with recombined blocks and signatures of two valid tokens", () => {
    const other = attenuateToken(
      engine,
      rootToken({ maxBudgetMicrocents: 900 }),
      { delegatee: id(bob) },
      alice,
    );
    const blocks = [...honest.attenuations, ...other.attenuations];
    const signatures = [...honest.signatures, ...other.signatures];
    const parts = fc.record({
      authority: fc.constantFrom(honest.authority, other.authority),
      attenuations: fc.array(fc.constantFrom(...blocks), { maxLength: 3 }),
      signatures: fc.array(fc.constantFrom(...signatures), { minLength: 1, maxLength: 4 }),
    });
    const prefixes = new Set(
      [honest, other].flatMap((token) => token.signatures.map((_, i) => JSON.stringify(prefix(token, i)))),
    );
    fc.assert(
      fc.property(parts, (mixed) => {
        const token = { format: "delegateos-sjt-v1", ...mixed };
        // A token without its last blocks is still validly signed, and grants more. Only the proof of possession
        // prevents its use.
        const isPrefix = prefixes.has(
          JSON.stringify(prefix(token as SignedJSONToken, mixed.attenuations.length)),
        );
        const complete = isPrefix && mixed.signatures.length === mixed.attenuations.length + 1;
        expect(verifyToken(engine, encode(token), context()).ok).toBe(complete);
      }),
      { numRuns: 400 },
    );
  });

  test("property: with blocks signed by random keys", () => {
    const key = fc.constantFrom<Keypair>(root, alice, bob, carol);
    fc.assert(
      fc.property(fc.tuple(key, key, key), (keys) => {
        const token = sign(honest.authority, honest.attenuations, keys);
        const rightful = keys[0] === root && keys[1] === alice && keys[2] === bob;
        expect(verifyToken(engine, encode(token), context()).ok).toBe(rightful);
      }),
    );
  });
});

describe("verify never throws", () => {
  test("property: for any value as token, and any value as context", () => {
    const anything = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSparseArray: true,
    });
    fc.assert(
      fc.property(anything, anything, (input, ctx) => {
        expect(verifyToken(engine, input as string, context())).toMatchObject({ ok: false });
        expect(verifyToken(engine, input as string, ctx as never)).toMatchObject({ ok: false });
        expect(verifyToken(engine, serialiseToken(rootToken()), ctx as never)).toMatchObject({ ok: false });
      }),
      { numRuns: 300 },
    );
  });

  test("property: for any JSON and any text as the content of a token; the engines agree", () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string({ unit: "binary" })), (content) => {
        const result = verifyToken(engine, encodeText(content), context());
        expect(result).toMatchObject({ ok: false });
        expect(verifyToken(portableEngine, encodeText(content), context())).toEqual(result);
      }),
    );
  });

  test("property: for any JSON in place of any part of a valid token", () => {
    const { authority } = rootToken();
    const paths: string[][] = [
      ["format"],
      ["authority"],
      ["attenuations"],
      ["signatures"],
      ["signatures", "0"],
    ];
    for (const name of Object.keys(authority)) paths.push(["authority", name]);
    fc.assert(
      fc.property(fc.constantFrom(...paths), fc.jsonValue(), (path, value) => {
        const token = JSON.parse(JSON.stringify(rootToken()));
        const parent = path.slice(0, -1).reduce((at, name) => at[name], token);
        fc.pre(JSON.stringify(parent[path.at(-1) as string]) !== JSON.stringify(value));
        parent[path.at(-1) as string] = value;
        expect(verifyToken(engine, encode(token), context()).ok).toBe(false);
      }),
      { numRuns: 300 },
    );
  });

  test("for objects with throwing accessors", () => {
    const trap = new Proxy({}, { get: () => trapped(), has: () => trapped(), ownKeys: () => trapped() });
    expect(verifyToken(engine, trap as never, context())).toMatchObject({ ok: false });
    expect(verifyToken(engine, "AA", trap as never)).toMatchObject({ ok: false });
    const token = serialiseToken(rootToken());
    for (const member of ["trustedRoots", "revocations", "holder", "request", "rules"]) {
      expect(verifyToken(engine, token, context({ [member]: trap }))).toMatchObject({ ok: false });
    }
  });
});

function prefix({ authority, attenuations, signatures }: SignedJSONToken, depth: number): object {
  return [authority, attenuations.slice(0, depth), signatures.slice(0, depth + 1)];
}

function trapped(): never {
  throw new Error("touched");
}
