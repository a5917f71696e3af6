import { expect, test } from "vitest";
import { nativeEngine } from "../engine/native.ts";
import { generateKeypair } from "../principal.ts";
import { signObject } from "../signed-object.ts";
import { logHeadSigningInput, signLogHead, verifyLogHead } from "./log-head.ts";

const engine = nativeEngine;
const keypair = generateKeypair(engine);
const head = { log: keypair.principal.id, treeSize: 3, rootHash: new Uint8Array(32).fill(7), time: 1 };

test("a signed head verifies, and no changed one does", () => {
  const signature = signLogHead(engine, head, keypair);
  expect(verifyLogHead(engine, head, signature)).toBe(true);
  const other = generateKeypair(engine).principal.id;
  for (const change of [
    { log: other },
    { log: "nobody" },
    { treeSize: 4 },
    { treeSize: Number.NaN },
    { rootHash: new Uint8Array(32) },
    { time: 2 },
  ]) {
    expect(verifyLogHead(engine, { ...head, ...change }, signature)).toBe(false);
  }
});

test("K9: a head is no other signature of its key, and no other signature is a head", () => {
  const entry = signObject(
    engine,
    "revocation",
    {
      revocationId: "A".repeat(43),
      revokedBy: keypair.principal.id,
      revokedAt: "2026-01-01T00:00:00Z",
      scope: "block",
    },
    keypair,
  );
  expect(verifyLogHead(engine, head, Buffer.from(entry.signature, "base64url"))).toBe(false);
  // Other objects are signed as digests of 32 bytes. The signed bytes of a head are longer, and its tag cannot begin
  // a JSON text. So no signature is valid for a head and for another object.
  expect(logHeadSigningInput(head).length).toBeGreaterThan(32);
  expect(Buffer.from(logHeadSigningInput(head)).subarray(0, 23).toString()).toBe("delegateos-log-head-v1\0");
});
