import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nativeEngine } from "../engine/native.ts";
import { portableEngine } from "../engine/portable.ts";
import { SESSION_LIFETIME_MS } from "../limits.ts";
import { argumentsDigest, checkProof, createProof, type ProofExpectation } from "../proof.ts";
import { serialiseToken } from "../serialise.ts";
import { alice, bob, context, engine, id, mallory, NOW, root, rootToken } from "../testing/fixtures.ts";
import { nextChar } from "../testing/forge.ts";
import { verifyToken } from "../verify.ts";
import type { HolderSession } from "./holder-session.ts";
import { openSession, type SessionGrant } from "./open.ts";
import { requestSession } from "./request.ts";
import { HolderSessions } from "./sessions.ts";

const token = serialiseToken(rootToken()).token;
const AUDIENCE = "https://depute.example";
const OPEN = { htm: "POST", htu: `${AUDIENCE}/sessions`, token };
const CALL = { htm: "POST", htu: `${AUDIENCE}/a.B/C` };
const expected = { ...OPEN, opens: AUDIENCE, now: NOW };
const call: ProofExpectation = { ...CALL, token, principal: id(alice), now: NOW };

function open(one = engine, other = engine, more: object = {}, options: object = {}) {
  const request = requestSession(one, alice, { ...OPEN, audience: AUDIENCE, now: NOW, ...more });
  const opened = openSession(other, request.proof, { ...expected, ...more }, { verifier: root, ...options });
  if (!opened.ok) return expect.fail(JSON.stringify(opened.denial));
  return { ...opened, request, caller: request.accept(opened.grant, id(root)) };
}

/** Returns the denial's type and detail, or "ok". */
function outcome(result: { ok: true } | { ok: false; denial: { type: string; detail?: string } }): string {
  return result.ok ? "ok" : [result.denial.type, result.denial.detail].filter(Boolean).join(" ");
}

describe.each([
  [nativeEngine, portableEngine],
  [portableEngine, nativeEngine],
] as const)("a session between engines", (one, other) => {
  test("is opened by one proof, and each call has its own code", () => {
    const { caller, session, proof } = open(one, other);
    expect(proof).toMatchObject({ principal: id(alice) });
    expect(session.terms).toEqual(caller.terms);
    const texts = [1, 2, 3].map(() => caller.prove({ ...CALL, now: NOW }));
    expect(new Set(texts).size).toBe(3);
    for (const text of texts.reverse()) {
      const result = session.check(other, text, call);
      if (!result.ok) expect.fail(outcome(result));
      expect(result.proof).toMatchObject({ principal: id(alice), thumbprint: proof.thumbprint });
      expect(session.use(result.proof.counter as number)).toBe(true);
      expect(session.use(result.proof.counter as number)).toBe(false);
      expect(outcome(session.check(other, text, call))).toBe("replayed_proof");
    }
  });
});

describe("a code is valid only for its own call", () => {
  const { caller, session } = open();
  const prove = (more: object = {}) => caller.prove({ ...CALL, now: NOW, ...more });
  const honest = prove();
  const [sid, counter, time, code] = honest.split(".") as [string, string, string, string];

  test.each<[string, unknown, object, string]>([
    ["the same call", honest, {}, "ok"],
    ["without a principal that is expected", honest, { principal: undefined }, "ok"],
    ["nothing", undefined, {}, "proof_required"],
    ["an empty text", "", {}, "proof_required"],
    ["another method", honest, { htm: "GET" }, "invalid_proof code"],
    ["another address of the audience", honest, { htu: `${CALL.htu}/D` }, "invalid_proof code"],
    ["another audience", honest, { htu: "https://depute.example.evil.org/a.B/C" }, "invalid_proof audience"],
    ["another token", honest, { token: `${token}A` }, "invalid_proof ath"],
    ["no token", honest, { token: undefined }, "invalid_proof ath"],
    ["another holder", honest, { principal: id(bob) }, "invalid_proof principal"],
    ["other arguments", honest, { ard: argumentsDigest(engine, {}) }, "invalid_proof code"],
    ["61 seconds after the call", honest, { now: NOW + 61_000 }, "invalid_proof time"],
    ["31 seconds before the call", honest, { now: NOW - 31_000 }, "invalid_proof time"],
    [
      "a time beyond the session",
      prove(),
      { now: NOW + SESSION_LIFETIME_MS + 1, windowMs: 9e9 },
      "invalid_proof session expired",
    ],
    ["another number", [sid, "9", time, code].join("."), {}, "invalid_proof code"],
    ["another time", [sid, counter, String(NOW + 1), code].join("."), {}, "invalid_proof code"],
    ["the number with a leading zero", [sid, `0${counter}`, time, code].join("."), {}, "invalid_proof form"],
    ["a number beyond integers", [sid, "9".repeat(16), time, code].join("."), {}, "invalid_proof form"],
    ["another session", ["A".repeat(22), counter, time, code].join("."), {}, "invalid_proof session"],
    ["K8 a code in another spelling", honest.slice(0, -1) + nextChar(honest), {}, "invalid_proof form"],
    ["a suffix", `${honest}A`, {}, "invalid_proof form"],
    ["a trailing line end", `${honest}\n`, {}, "invalid_proof form"],
    [
      "a standalone proof",
      createProof(engine, alice, { ...CALL, token, now: NOW }),
      {},
      "invalid_proof form",
    ],
    ["NaN as now", honest, { now: Number.NaN }, "internal_context"],
    ["an infinite window", honest, { windowMs: Number.POSITIVE_INFINITY }, "internal_context"],
    ["no address", honest, { htu: undefined }, "internal_context"],
  ])("%s", (_, text, more, expectedOutcome) => {
    expect(outcome(session.check(engine, text, { ...call, ...more } as ProofExpectation))).toBe(
      expectedOutcome,
    );
  });

  test("a code binds the arguments", () => {
    const text = prove({ arguments: { b: 1, a: 2 } });
    const ard = argumentsDigest(engine, { a: 2, b: 1 });
    expect(outcome(session.check(engine, text, { ...call, ard }))).toBe("ok");
    expect(outcome(session.check(engine, text, call))).toBe("invalid_proof code");
  });

  test("property: a changed proof is refused without an exception", () => {
    const insertion = fc.constantFrom(..."AZaz09-_.= \n", "");
    fc.assert(
      fc.property(
        fc.nat(honest.length - 1),
        insertion,
        fc.nat(2),
        fc.anything(),
        (at, more, removedCount, junk) => {
          const changed = honest.slice(0, at) + more + honest.slice(at + removedCount);
          expect(session.check(engine, changed, call).ok).toBe(changed === honest);
          expect(session.check(engine, junk, call).ok).toBe(false);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("a closed session refuses every code", () => {
    const other = open();
    const text = other.caller.prove({ ...CALL, now: NOW });
    other.session.close();
    expect(outcome(other.session.check(engine, text, call))).toBe("invalid_proof code");
  });
});

describe("the opening of a session", () => {
  const request = requestSession(engine, alice, { ...OPEN, audience: AUDIENCE, now: NOW });
  const plain = createProof(engine, alice, { ...OPEN, now: NOW });

  test.each<[string, unknown, object, string]>([
    ["nothing", undefined, {}, "proof_required"],
    ["a proof for a call", plain, {}, "invalid_proof aud"],
    ["for another audience", request.proof, { opens: "https://other.example" }, "invalid_proof aud"],
    ["for no audience", request.proof, { opens: "" }, "internal_context"],
    ["for another token", request.proof, { token: "other" }, "invalid_proof ath"],
    ["by another principal", request.proof, { principal: id(bob) }, "invalid_proof jwk"],
    ["late", request.proof, { now: NOW + 61_000 }, "invalid_proof iat"],
    [
      "with a key of small order",
      createProof(engine, alice, { ...OPEN, now: NOW, session: { epk: "A".repeat(43), aud: AUDIENCE } }),
      {},
      "invalid_proof epk",
    ],
  ])("%s", (_, proof, more, expectedOutcome) => {
    expect(outcome(openSession(engine, proof, { ...expected, ...more }))).toBe(expectedOutcome);
  });

  test("K4 a key of mixed order gives no shared secret", () => {
    const mixed = open();
    const { verifierKey } = mixed.grant;
    expect(engine.agree(new Uint8Array(32), Buffer.from(verifierKey, "base64url"))).toBeDefined();
    const proof = createProof(engine, alice, { ...OPEN, now: NOW, session: { epk: MIXED, aud: AUDIENCE } });
    expect(outcome(openSession(engine, proof, expected))).toBe("invalid_proof epk");
  });

  test("the opening proof is valid for no other purpose", () => {
    expect(checkProof(engine, request.proof, { ...OPEN, now: NOW })).toMatchObject({
      denial: { detail: "epk" },
    });
    expect(checkProof(engine, plain, { ...OPEN, now: NOW }).ok).toBe(true);
  });

  test("a session lasts at most its maximum, and at most until its token's end", () => {
    const end = (options: object) => open(engine, engine, {}, options).session.terms.expiresAt;
    expect(end({})).toBe(NOW + SESSION_LIFETIME_MS);
    expect(end({ lifetimeMs: 5 })).toBe(NOW + 5);
    expect(end({ notAfter: NOW + 7 })).toBe(NOW + 7);
    const odd = openSession(engine, request.proof, expected, { lifetimeMs: Number.NaN });
    expect(outcome(odd)).toBe("internal_context");
  });

  test("without a token it identifies the caller, and no token can be used with it", () => {
    const { caller, session } = open(engine, engine, { token: undefined });
    const text = caller.prove({ ...CALL, now: NOW });
    const { token: _, ...bare } = call;
    expect(outcome(session.check(engine, text, bare))).toBe("ok");
    expect(outcome(session.check(engine, text, call))).toBe("invalid_proof ath");
  });

  test("neither an observer of the opening nor the holder under another key can make a call", () => {
    const { grant, session } = open();
    const other = requestSession(engine, alice, { ...OPEN, audience: AUDIENCE, now: NOW }).accept(grant);
    const text = other.prove({ ...CALL, now: NOW });
    expect(outcome(session.check(engine, text, call))).toBe("invalid_proof code");
  });

  test.each<[string, (grant: SessionGrant) => SessionGrant]>([
    ["signed by another principal", (grant) => ({ ...grant, signer: id(mallory) })],
    ["not signed", ({ id: sid, expiresAt, verifierKey }) => ({ id: sid, expiresAt, verifierKey })],
    ["with another key", (grant) => ({ ...grant, verifierKey: id(bob) })],
    ["with another end", (grant) => ({ ...grant, expiresAt: grant.expiresAt + 1 })],
    ["with another id", (grant) => ({ ...grant, id: "A".repeat(22) })],
    ["with a malformed id", (grant) => ({ ...grant, id: "A" })],
    ["with NaN as its end", (grant) => ({ ...grant, expiresAt: Number.NaN })],
    ["with a malformed key", (grant) => ({ ...grant, verifierKey: "A".repeat(43) })],
  ])("a grant %s is refused", (_, change) => {
    const { request: ownRequest, grant } = open();
    expect(() => ownRequest.accept(grant, id(root))).not.toThrow();
    expect(() => ownRequest.accept(change(grant), id(root))).toThrow(/^invalid_proof/);
  });

  test("changed terms under the same two keys give another key", () => {
    const { request: ownRequest, grant, session } = open();
    const otherId = "A".repeat(22);
    for (const change of [{}, { expiresAt: grant.expiresAt + 1 }, { id: otherId }]) {
      const text = ownRequest.accept({ ...grant, ...change }).prove({ ...CALL, now: NOW });
      const renamed = text.replace(otherId, grant.id);
      const isSame = Object.keys(change).length === 0;
      expect(outcome(session.check(engine, renamed, call))).toBe(isSame ? "ok" : "invalid_proof code");
    }
  });

  test("an expired session creates no proof", () => {
    const { caller } = open();
    expect(() => caller.prove({ ...CALL, now: NOW + SESSION_LIFETIME_MS + 1 })).toThrow(/expired/);
  });
});

describe("a token is verified with a session in place of a proof", () => {
  const { caller, session } = open();
  const ask = (proof: string | undefined, more: object = {}) => {
    const holder = { proof, session, ...CALL };
    return verifyToken(engine, token, context({ now: NOW, holder, ...more }));
  };

  test("by its holder, once for each code", () => {
    const text = caller.prove({ ...CALL, now: NOW });
    const result = ask(text);
    if (!result.ok) expect.fail(outcome(result));
    expect(session.use(result.proof?.counter as number)).toBe(true);
    expect(ask(text)).toMatchObject({ denial: { type: "replayed_proof" } });
    expect(ask(undefined)).toMatchObject({ denial: { type: "proof_required" } });
    expect(ask(createProof(engine, alice, { ...CALL, token, now: NOW }))).toMatchObject({
      denial: { type: "invalid_proof" },
    });
  });

  test("without a right of its own: a revoked token is denied", () => {
    const text = caller.prove({ ...CALL, now: NOW });
    expect(ask(text, { revocations: { isRevoked: () => true } })).toMatchObject({
      denial: { type: "revoked" },
    });
    expect(ask(text).ok).toBe(true);
  });

  test("not by the holder of another token", () => {
    const other = serialiseToken(rootToken({ delegatee: id(bob) })).token;
    const text = caller.prove({ ...CALL, now: NOW });
    const holder = { proof: text, session, ...CALL };
    expect(verifyToken(engine, other, context({ now: NOW, holder }))).toMatchObject({
      denial: { type: "invalid_proof", detail: "principal" },
    });
  });

  test("never throws, for any value in the session's place", () => {
    fc.assert(
      fc.property(fc.anything(), (junk) => {
        const holder = { proof: "x", session: junk as HolderSession, ...CALL };
        expect(verifyToken(engine, token, context({ now: NOW, holder })).ok).toBe(false);
      }),
    );
  });
});

describe("the sessions of one verifier", () => {
  const sessionFor = (keypair = alice, lifetimeMs = 1000) => {
    const request = requestSession(engine, keypair, { ...OPEN, audience: AUDIENCE, now: NOW });
    const opened = openSession(engine, request.proof, expected, { lifetimeMs });
    if (!opened.ok) return expect.fail(outcome(opened));
    return { ...opened, prove: () => request.accept(opened.grant).prove({ ...CALL, now: NOW }) };
  };

  test("are found by a call's proof, until they are closed", () => {
    const table = new HolderSessions();
    const [one, two] = [sessionFor(), sessionFor(bob)];
    expect(table.add(one.session, NOW)).toBe(true);
    expect(table.add(two.session, NOW)).toBe(true);
    expect(table.find(one.prove())).toBe(one.session);
    expect(table.find(two.prove())).toBe(two.session);
    for (const text of ["", "x", `${"A".repeat(22)}.1.1.x`, undefined, 7])
      expect(table.find(text)).toBeUndefined();
    table.close(one.session.terms.id);
    table.close(one.session.terms.id);
    expect(table.find(one.prove())).toBeUndefined();
    table.closeAllOf(id(bob));
    expect(table.size).toBe(0);
    expect(outcome(two.session.check(engine, two.prove(), { ...call, principal: id(bob) }))).toMatch(/code$/);
  });

  test("are limited, in total and for each principal, and none is evicted for another", () => {
    const table = new HolderSessions(3, 2);
    const first = sessionFor();
    expect(
      [first, sessionFor(), sessionFor(), sessionFor(bob), sessionFor(mallory)].map(({ session }) =>
        table.add(session, NOW),
      ),
    ).toEqual([...[true, true, false, true, false]]);
    expect(table.find(first.prove())).toBe(first.session);
    // When the old holder sessions have expired, a new one is accepted.
    expect(table.add(sessionFor(mallory).session, NOW + 1001)).toBe(true);
    expect(table.size).toBe(1);
    expect(table.add(sessionFor(alice, 5000).session, NOW + 1001)).toBe(true);
  });

  test("are removed after their expiry at most once a second when the limit is reached", () => {
    const table = new HolderSessions(1, 1);
    table.add(sessionFor(bob, 1500).session, NOW);
    expect(table.add(sessionFor().session, NOW + 1000)).toBe(false);
    expect(table.add(sessionFor().session, NOW + 1600)).toBe(false);
    expect(table.add(sessionFor().session, NOW + 2000)).toBe(true);
  });
});

/** A key of mixed order: the sum of a point of prime order and a point of small order. */
const MIXED = "H9BT0Vlps2Z-HAouZAV0F3n5y8MVxw9UA5EwqjMpzs8";
