import { expect, test } from "vitest";
import { attenuateToken } from "./attenuate.ts";
import { serialiseToken } from "./serialise.ts";
import { alice, bob, context, encode, engine, id, rootToken } from "./testing/fixtures.ts";
import { VerifiedPrefixes } from "./verified-prefixes.ts";
import { VerifiedTokens } from "./verified-tokens.ts";
import { verifyToken } from "./verify.ts";

const RULES = { ids: "strict" } as const;
const chain = attenuateToken(engine, rootToken(), { delegatee: id(bob) }, alice);
const text = serialiseToken(chain).token;

test("a second verification of a text reads no block and hashes nothing", () => {
  const verified = new VerifiedPrefixes();
  const first = verifyToken(engine, text, context(), { verified });
  const unused = () => {
    throw new Error("not needed");
  };
  const idle = { ...engine, blake2b256: unused, verify: unused };
  expect(verifyToken(idle, text, context(), { verified })).toEqual(first);
  expect(verified.tokens.size).toBe(1);
});

test("a forged token is not kept, even if all of its blocks are known", () => {
  const verified = new VerifiedPrefixes();
  verifyToken(engine, text, context(), { verified });
  const [signature] = chain.signatures;
  const forged = encode({ ...chain, signatures: [signature, signature] });
  const signer = encode({
    ...chain,
    signatures: chain.signatures.map((entry) => ({ ...entry, signer: id(bob) })),
  });
  for (const one of [forged, signer, `${text}A`, text.slice(4)]) {
    expect(verifyToken(engine, one, context(), { verified }).ok).toBe(false);
  }
  expect(verified.tokens.size).toBe(1);
});

test("a root that is not trusted, and a revoked token, are not kept", () => {
  const verified = new VerifiedPrefixes();
  verifyToken(engine, text, context({ trustedRoots: new Set() }), { verified });
  verifyToken(engine, text, context({ revocations: { isRevoked: () => true } }), { verified });
  expect(verified.tokens.size).toBe(0);
});

test("a kept token cannot be changed through a result", () => {
  const result = verifyToken(engine, text, context(), { verified: new VerifiedPrefixes() });
  if (!result.ok) throw new Error("denied");
  const { token } = result;
  expect(() => token.attenuations.pop()).toThrow(TypeError);
  expect(() => Object.assign(token.authority.capabilities[0] ?? {}, { resource: "/**" })).toThrow(TypeError);
  result.scope.capabilities.pop();
  expect(token.authority.capabilities.length).toBeGreaterThan(0);
});

test("a token is found only for its engine and its rule of ids", () => {
  const tokens = new VerifiedTokens();
  tokens.add(engine, text, RULES, { token: chain, ids: ["a", "b"] });
  expect(tokens.find(engine, text, RULES)?.ids).toEqual(["a", "b"]);
  expect(tokens.find({ ...engine, name: "another" }, text, RULES)).toBeUndefined();
  expect(tokens.find(engine, text, { ids: "relaxed" })).toBeUndefined();
  tokens.clear();
  expect(tokens.find(engine, text, RULES)).toBeUndefined();
});

test("the number of tokens and of their characters is bounded: the least recently used is evicted", () => {
  const token = { token: rootToken(), ids: [] };
  const kept = (tokens: VerifiedTokens) =>
    ["aaaa", "bbbb", "cccc"].filter((one) => tokens.find(engine, one, RULES) !== undefined);
  for (const tokens of [new VerifiedTokens(2), new VerifiedTokens(9, 11)]) {
    for (const one of ["aaaa", "bbbb", "bbbb"]) tokens.add(engine, one, RULES, token);
    tokens.find(engine, "aaaa", RULES);
    tokens.add(engine, "cccc", RULES, token);
    expect(kept(tokens)).toEqual(["aaaa", "cccc"]);
    expect(tokens.size).toBe(2);
  }
  const small = new VerifiedTokens(9, 3);
  small.add(engine, "aaaa", RULES, token);
  expect(small.size).toBe(0);
});
