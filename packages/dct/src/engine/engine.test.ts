import { createHash } from "node:crypto";
import * as ed from "@noble/ed25519";
import { sha512 } from "@noble/hashes/sha2.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CryptoEngine } from "../engine.ts";
import { fromHex } from "./encodings.ts";
import { nativeEngine } from "./native.ts";
import { portableEngine } from "./portable.ts";
import { EngineError, selfTest } from "./self-test.ts";
import { SIGNATURE_VECTORS } from "./vectors.ts";

const engines = [nativeEngine, portableEngine];
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });

describe.each(engines)("engine $name", (engine) => {
  test("K5 passes its self test", () => {
    expect(() => selfTest(engine)).not.toThrow();
  });

  test.each(SIGNATURE_VECTORS)("K2 K3 K4 K7 $name", ({ publicKey, message, signature, valid }) => {
    expect(engine.verify(fromHex(signature), fromHex(message), fromHex(publicKey))).toBe(valid);
  });

  test("K1 keys and signatures of another length are refused", () => {
    const seed = new Uint8Array(32).fill(1);
    const key = engine.publicKey(seed);
    const signature = engine.sign(key, seed);
    expect(engine.verify(signature, key, key)).toBe(true);
    for (const length of [0, 31, 33, 64]) {
      expect(engine.verify(signature, key, new Uint8Array(length).fill(9))).toBe(false);
      expect(engine.isPrimeOrder(new Uint8Array(length).fill(9))).toBe(false);
    }
    for (const length of [0, 32, 63, 65, 128])
      expect(engine.verify(new Uint8Array(length), key, key)).toBe(false);
    expect(() => engine.sign(key, new Uint8Array(64))).toThrow(RangeError);
    expect(() => engine.publicKey(new Uint8Array(31))).toThrow(RangeError);
  });

  test("does not change its arguments", () => {
    const seed = new Uint8Array(32).fill(3);
    const message = new Uint8Array(10).fill(4);
    engine.sign(message, seed);
    expect(seed).toEqual(new Uint8Array(32).fill(3));
    expect(message).toEqual(new Uint8Array(10).fill(4));
  });
});

test("K6 signatures that are valid only as a batch are valid for no engine", () => {
  const { n: order, p: field } = ed.Point.CURVE();
  const number = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`);
  const littleEndian = (value: bigint) => Buffer.from(value.toString(16).padStart(64, "0"), "hex").reverse();
  const half = ed.Point.fromAffine({ x: 0n, y: field - 1n });
  const secret = 123_456_789n;
  const key = ed.Point.BASE.multiply(secret);
  const signed = [1n, 2n].map((nonce) => {
    const message = littleEndian(nonce);
    // Each R is offset by a point of order two. Two offsets cancel out, so that the batch equation holds for the pair,
    // but not for one signature.
    const r = ed.Point.BASE.multiply(nonce).add(half);
    const k = number(sha512(Buffer.concat([r.toBytes(), key.toBytes(), message]))) % order;
    const s = (nonce + k * secret) % order;
    return { message, r, k, s, signature: Buffer.concat([r.toBytes(), littleEndian(s)]) };
  });
  const [first, second] = signed;
  if (first === undefined || second === undefined) throw new Error("there are two");
  const left = ed.Point.BASE.multiply((first.s + second.s) % order);
  const right = first.r.add(second.r).add(key.multiply((first.k + second.k) % order));
  expect(left.equals(right)).toBe(true);
  for (const engine of engines) {
    for (const { signature, message } of signed) {
      expect(engine.verify(signature, message, key.toBytes())).toBe(false);
    }
  }
});

describe("the engines agree", () => {
  test("property: keys, signatures and digests are the same bytes", () => {
    fc.assert(
      fc.property(bytes(32), fc.uint8Array({ maxLength: 300 }), (seed, message) => {
        const [a, b] = engines.map((engine) => ({
          key: engine.publicKey(seed),
          signature: engine.sign(message, seed),
          blake2b: engine.blake2b256(message),
          sha256: engine.sha256(message),
        }));
        expect(b).toEqual(a);
      }),
      { numRuns: 30 },
    );
  });

  test("property: on a signature with one changed bit, and on junk", () => {
    fc.assert(
      fc.property(bytes(32), bytes(32), fc.nat(128 * 8 - 1), (seed, message, bit) => {
        const triple = Uint8Array.of(
          ...nativeEngine.sign(message, seed),
          ...message,
          ...nativeEngine.publicKey(seed),
        );
        triple[bit >> 3] = (triple[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        const [s, m, k] = [triple.slice(0, 64), triple.slice(64, 96), triple.slice(96)];
        for (const engine of engines) expect(engine.verify(s, m, k)).toBe(false);
        expect(portableEngine.isPrimeOrder(k)).toBe(nativeEngine.isPrimeOrder(k));
      }),
      { numRuns: 60 },
    );
  });

  test("property: on keys and R with a part of small order", () => {
    const torsion = ed.Point.fromHex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05");
    const order = ed.Point.CURVE().n;
    const small = fc.nat(7);
    fc.assert(
      fc.property(
        fc.bigInt(1n, order - 1n),
        fc.bigInt(1n, order - 1n),
        small,
        small,
        bytes(8),
        (a, r, i, j, m) => {
          const key = ed.Point.BASE.multiply(a)
            .add(torsion.multiplyUnsafe(BigInt(i)))
            .toBytes();
          const R = ed.Point.BASE.multiply(r)
            .add(torsion.multiplyUnsafe(BigInt(j)))
            .toBytes();
          const k = number(sha512(Uint8Array.of(...R, ...key, ...m))) % order;
          const s = fromHex(((r + k * a) % order).toString(16).padStart(64, "0")).reverse();
          const signature = Uint8Array.of(...R, ...s);
          const holdsWithoutCofactor = (BigInt(j) + k * BigInt(i)) % 8n === 0n;
          for (const engine of engines) expect(engine.verify(signature, m, key)).toBe(holdsWithoutCofactor);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("K5 an engine with a wrong answer does not start", () => {
  const cofactored = (signature: Uint8Array, message: Uint8Array, key: Uint8Array, zip215: boolean) => {
    try {
      return ed.verify(signature, message, key, { zip215 });
    } catch {
      return false;
    }
  };
  test.each<[string, Partial<CryptoEngine>]>([
    ["cofactored verification", { verify: (s, m, k) => cofactored(s, m, k, false) }],
    ["ZIP 215", { verify: (s, m, k) => cofactored(s, m, k, true) }],
    [
      "signatures with further bytes",
      { verify: (s, m, k) => portableEngine.verify(s.subarray(0, 64), m, k) },
    ],
    [
      "truncated BLAKE2b-512",
      { blake2b256: (d) => createHash("blake2b512").update(d).digest().subarray(0, 32) },
    ],
    ["a verifier that always agrees", { verify: () => true }],
    ["a verifier that never agrees", { verify: () => false }],
  ])("%s", (_, wrong) => {
    expect(() => selfTest({ ...portableEngine, ...wrong })).toThrow(EngineError);
  });
});

function number(littleEndian: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(littleEndian).reverse().toString("hex")}`);
}
