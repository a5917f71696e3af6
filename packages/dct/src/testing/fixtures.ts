import { canonicalBytes, encodeBase64Url } from "@depute/core";
import type { VerificationContext } from "../context.ts";
import { type CreateParams, createToken } from "../create.ts";
import { nativeEngine } from "../engine/native.ts";
import { BlockTexts } from "../payload.ts";
import { keypairFromSeed } from "../principal.ts";
import { RevocationList } from "../revocation.ts";
import type { Attenuation, Authority, Keypair, SignedJSONToken } from "../types.ts";

/** The engine for the tests of this package. */
export const engine = nativeEngine;

export const [root, alice, bob, carol, mallory] = [1, 2, 3, 4, 5].map((n) => {
  return keypairFromSeed(engine, new Uint8Array(32).fill(n));
}) as [Keypair, Keypair, Keypair, Keypair, Keypair];

export const id = (keypair: Keypair): string => keypair.principal.id;

/** 2026-02-17T12:00:00.000Z */
export const NOW = Date.UTC(2026, 1, 17, 12);
export const CONTRACT = "ct_a1b2c3d4e5f6";
export const delegation = (n: number): string => `del_${n.toString(16).padStart(12, "0")}`;

export const params: CreateParams = {
  delegatee: id(alice),
  capabilities: [
    { namespace: "docs", action: "read", resource: "/project/**" },
    { namespace: "web", action: "search", resource: "*" },
  ],
  contractId: CONTRACT,
  delegationId: delegation(1),
  maxBudgetMicrocents: 1000,
  maxChainDepth: 3,
};

export function rootToken(more: Partial<CreateParams> = {}): SignedJSONToken {
  return createToken(engine, { ...params, ...more }, root, { now: NOW });
}

export function context(more: Partial<VerificationContext> = {}): VerificationContext {
  return {
    trustedRoots: new Set([id(root)]),
    revocations: new RevocationList(engine),
    now: NOW + 1000,
    spentMicrocents: 0,
    holder: "bearer",
    ...more,
  };
}

/** Builds a token of unchecked blocks, each signed by the key at its index, as an attacker's tool could build it. */
export function sign(
  authority: object,
  attenuations: object[] = [],
  keys: Keypair[] = [root, alice, bob, carol],
) {
  const texts = new BlockTexts(authority as Authority, attenuations as Attenuation[]);
  const signatures = [authority, ...attenuations].map((_, i) => {
    const key = keys[i] ?? mallory;
    const signature = encodeBase64Url(engine.sign(texts.signedDigest(engine, i), key.privateKey));
    return { signer: id(key), signature, covers: i === 0 ? "authority" : i - 1 };
  });
  return { format: "delegateos-sjt-v1", authority, attenuations, signatures };
}

/** Returns base64url of the canonical JSON of any value. */
export const encode = (value: unknown): string => encodeBase64Url(canonicalBytes(value));

/** Returns base64url of the unchanged text. */
export const encodeText = (text: string): string => encodeBase64Url(new TextEncoder().encode(text));
