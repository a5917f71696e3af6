import { decodeBase64Url } from "@depute/core";
import { type CallerSession, createProof, type Keypair, keypairFromSeed } from "@depute/dct";
import { nativeEngine } from "@depute/dct/native";
import type { Presentation } from "./presentation.ts";

/**
 * Reads a holder's private key. With this key, the proxy creates proofs on the holder's behalf.
 *
 * @param seed 32 bytes in base64url
 * @throws Error for an invalid key
 */
export function holderKey(seed: string): Keypair {
  const bytes = decodeBase64Url(seed.trim());
  if (bytes?.length !== 32) throw new Error("the key must be 32 bytes in base64url");
  return keypairFromSeed(nativeEngine, bytes);
}

/**
 * The holder sessions of a key. In a session, a code proves a call in place of a signature (see HolderSessionService of
 * the contracts).
 */
export interface KeySessions {
  /** Returns the open session; undefined while there is none. The holder then makes a single proof. */
  ready(): CallerSession | undefined;
  /** Called when the platform has refused the proof of a call in this session. */
  forget(session: CallerSession): void;
}

/** A token and its key, which the proxy has, and the target that proofs name. */
export interface HeldKey {
  readonly token: string;
  readonly key: Keypair;
  readonly audience: string;
  readonly now: () => number;
  /** The holder sessions for this token and audience; absent if every call has a single proof. */
  readonly sessions?: KeySessions;
}

/** Presents a token whose key the proxy has. The proxy creates a new proof for every call. */
export function heldToken({ token, key, audience, now, sessions }: HeldKey): Presentation {
  const method = "MCP";
  let used: CallerSession | undefined;
  return {
    token,
    contractId: "",
    async prove(args) {
      used = sessions?.ready();
      const claims = { htm: method, htu: audience, arguments: args, now: now() };
      const jwt = used?.prove(claims) ?? createProof(nativeEngine, key, { ...claims, token });
      return { jwt, method, target: audience };
    },
    loseSession() {
      if (used === undefined) return false;
      sessions?.forget(used);
      used = undefined;
      return true;
    },
  };
}
