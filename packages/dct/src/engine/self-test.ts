import type { CryptoEngine } from "../engine.ts";
import { fromHex } from "./encodings.ts";
import { AGREEMENT, HASH_VECTORS, MAC_VECTORS, SIGNATURE_VECTORS, SIGNING_VECTORS } from "./vectors.ts";

/** Thrown when an engine gave a wrong answer to a known case. The server must then not start. */
export class EngineError extends Error {
  override readonly name = "EngineError";
}

/**
 * Runs the known cases, including hostile encodings, on an engine. Throws EngineError at the first wrong answer,
 * because the servers of one fleet must agree on every signature.
 */
export function selfTest(engine: CryptoEngine): void {
  const expect = (subject: string, got: unknown, expected: unknown) => {
    if (got !== expected)
      throw new EngineError(`engine ${engine.name}: ${subject}: ${got} in place of ${expected}`);
  };
  for (const { text, ...digests } of HASH_VECTORS) {
    const data = new TextEncoder().encode(text);
    expect(`BLAKE2b-256 of "${text}"`, toHex(engine.blake2b256(data)), digests.blake2b256);
    expect(`SHA-256 of "${text}"`, toHex(engine.sha256(data)), digests.sha256);
  }
  for (const { key, text, mac } of MAC_VECTORS) {
    expect(`MAC of "${text}"`, toHex(engine.mac(fromHex(key), new TextEncoder().encode(text))), mac);
  }
  for (const [mine, theirs] of [SIGNING_VECTORS, SIGNING_VECTORS.toReversed()] as const) {
    const shared = engine.agree(fromHex(mine?.seed ?? ""), fromHex(theirs?.publicKey ?? ""));
    expect("an agreement", toHex(shared ?? new Uint8Array()), AGREEMENT);
  }
  for (const vector of SIGNING_VECTORS) {
    const seed = fromHex(vector.seed);
    const message = fromHex(vector.message);
    const signature = fromHex(vector.signature);
    const key = fromHex(vector.publicKey);
    expect("public key", toHex(engine.publicKey(seed)), vector.publicKey);
    expect("signature", toHex(engine.sign(message, seed)), vector.signature);
    expect("an honest signature", engine.verify(signature, message, key), true);
    expect("an honest key", engine.isPrimeOrder(key), true);
    expect("a signature and one byte", engine.verify(Uint8Array.of(...signature, 0), message, key), false);
    expect("a signature less one byte", engine.verify(signature.subarray(0, 63), message, key), false);
    expect("a key and one byte", engine.verify(signature, message, Uint8Array.of(...key, 0)), false);
    expect("another message", engine.verify(signature, Uint8Array.of(...message, 0), key), false);
  }
  for (const vector of SIGNATURE_VECTORS) {
    const key = fromHex(vector.publicKey);
    const answer = engine.verify(fromHex(vector.signature), fromHex(vector.message), key);
    expect(vector.name, answer, vector.valid);
    if (vector.name.startsWith("key "))
      expect(`prime order of ${vector.name}`, engine.isPrimeOrder(key), false);
    if (vector.name.startsWith("key ")) {
      expect(`agreement with ${vector.name}`, engine.agree(fromHex(AGREEMENT), key), undefined);
    }
  }
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
