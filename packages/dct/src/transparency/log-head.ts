import { canonicalBytes, encodeBase64Url } from "@depute/core";
import type { CryptoEngine } from "../engine.ts";
import { parsePrincipal } from "../principal.ts";
import type { Keypair } from "../types.ts";

/** A transparency log's signed state at one time (RFC 6962 3.5, with DelegateOS keys). */
export interface LogHead {
  /** The log's principal: base64url of its Ed25519 public key. */
  log: string;
  /** Number of leaves. */
  treeSize: number;
  /** Root hash of the tree, 32 bytes. */
  rootHash: Uint8Array;
  /** The time of the head, in milliseconds since 1970. */
  time: number;
}

/** Precedes the signed bytes of a head. No other object that a principal signs begins with these bytes. */
const TAG = new TextEncoder().encode("delegateos-log-head-v1\0");

/** Returns the bytes that a head's signature covers: a tag, and the canonical JSON of its members. */
export function logHeadSigningInput({ log, treeSize, rootHash, time }: LogHead): Uint8Array {
  const body = canonicalBytes({ log, rootHash: encodeBase64Url(rootHash), time, treeSize });
  const input = new Uint8Array(TAG.length + body.length);
  input.set(TAG);
  input.set(body, TAG.length);
  return input;
}

/** Returns the 64-byte signature of a head by the log's own key. */
export function signLogHead(engine: CryptoEngine, head: LogHead, { privateKey }: Keypair): Uint8Array {
  return engine.sign(logHeadSigningInput(head), privateKey);
}

/** Whether a head is signed by the log that it names. Never throws. */
export function verifyLogHead(engine: CryptoEngine, head: LogHead, signature: Uint8Array): boolean {
  try {
    const key = parsePrincipal(head.log);
    return key !== undefined && engine.verify(signature, logHeadSigningInput(head), key);
  } catch {
    // A head has no valid signature if one of its members has no canonical form.
    return false;
  }
}
