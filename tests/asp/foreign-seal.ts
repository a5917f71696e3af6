import { createHash, createPublicKey, verify } from "node:crypto";
import { canonical, type Document, type Json } from "./stranger.ts";

/**
 * This file checks the seal of a transcript without the platform's code. The checks follow only the comments in
 * proto/, and use SHA-256 and Ed25519 of Node.js.
 */

export interface Seal {
  readonly key: string;
  readonly recordHash: string;
  readonly signature: string;
  readonly log: {
    readonly index: number;
    readonly loggedAt: string;
    readonly hashes?: readonly string[];
    readonly logKey: string;
    readonly treeSize: number;
    readonly rootHash: string;
    readonly signedAt: string;
    readonly signature: string;
  };
}

export type Sealed = Document & { readonly messages: Document[]; readonly seal: Seal & Document };

/** The keys that a platform publishes. */
export interface Keys {
  readonly sealKeys: readonly string[];
  readonly logKeys: readonly string[];
}

/** Returns why a seal is invalid; undefined for a valid seal. */
export function faultOfSeal(transcript: Sealed, { sealKeys, logKeys }: Keys): string | undefined {
  const { format = "", lastHash = "", participants = [], messages, seal } = transcript;
  const { sessionId = "", exportedAt = "", state = "" } = transcript;
  const { key, recordHash, log } = seal;
  if (!sealKeys.includes(key) || !logKeys.includes(log.logKey)) return "another platform's keys";
  const hashes = messages.map((entry) => hashText(canonical(entry)));
  const record = { format, lastHash, messages: hashes, participants, sessionId };
  if (hashText(canonical(record)) !== recordHash) return "another record";
  const head = headOf(transcript);
  if (!isSigned("delegateos-asp-transcript-v1", { exportedAt, head, key, state }, seal.signature, key)) {
    return "not signed by the platform";
  }
  const leaf = { digest: digestOf(head), kind: "session_head", time: Date.parse(log.loggedAt) };
  const root = rootOf(sha256(Buffer.of(0), canonical(leaf)), log);
  if (!root.equals(hexOf(log.rootHash))) return "not in the log";
  const logHead = {
    log: log.logKey,
    rootHash: root.toString("base64url"),
    time: Date.parse(log.signedAt),
    treeSize: log.treeSize,
  };
  return isSigned("delegateos-log-head-v1", logHead, log.signature, log.logKey)
    ? undefined
    : "not signed by the log";
}

/** Returns why the hash chain of a transcript's messages is invalid; undefined for a valid chain. */
export function faultOfChain({
  messages,
  participants,
  lastHash,
}: Document & { messages: Document[] }): string | undefined {
  let previous = `sha256:${"0".repeat(64)}`;
  for (const [at, entry] of messages.entries()) {
    const { integrity, ...rest } = entry.envelope as Document;
    const { hash = "", previousHash = "", signature = "" } = integrity as Document;
    const digest = sha256(canonical({ ...rest, integrity: { previousHash } }));
    if (hash !== `sha256:${digest.toString("hex")}` || previousHash !== previous)
      return `the hash of message ${at + 1}`;
    const { agentId } = rest.sender as Document;
    const sender = (participants as Document[]).find((one) => one.agentId === agentId);
    const signed = Buffer.concat([Buffer.from("asp/0.1\n"), digest]);
    if (!isOf(signed, String(signature), String(sender?.signingPublicKey)))
      return `the signature of message ${at + 1}`;
    previous = String(hash);
  }
  return previous === lastHash ? undefined : "the newest hash";
}

export function headOf({ seal, messages, lastHash = "", sessionId = "" }: Sealed): Document {
  const { recordHash } = seal;
  return { format: "asp-session-head/0.1", lastHash, length: messages.length, recordHash, sessionId };
}

/** Returns the digest of a document in the log, in base64url. */
export function digestOf(document: Json): string {
  return sha256(canonical(document)).toString("base64url");
}

function sha256(...parts: readonly (string | Buffer)[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

function hashText(text: string): string {
  return `sha256:${sha256(text).toString("hex")}`;
}

function hexOf(text: string): Buffer {
  return Buffer.from(text.slice(text.indexOf(":") + 1), "hex");
}

function isSigned(tag: string, body: Json, signature: string, x: string): boolean {
  return isOf(Buffer.from(`${tag}\0${canonical(body)}`), signature, x);
}

function isOf(signed: Buffer, signature: string, x: string): boolean {
  const key = createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", x } });
  return verify(null, signed, key, hexOf(signature));
}

/** Returns the root that an audit path leads to. (RFC 9162 2.1.3.2) */
function rootOf(leaf: Buffer, { index, treeSize, hashes = [] }: Seal["log"]): Buffer {
  let [at, last, hash] = [index, treeSize - 1, leaf];
  for (const other of hashes.map(hexOf)) {
    const isRight = at % 2 === 1 || at === last;
    hash = isRight ? sha256(Buffer.of(1), other, hash) : sha256(Buffer.of(1), hash, other);
    while (isRight && at % 2 === 0 && at !== 0) [at, last] = [at >> 1, last >> 1];
    [at, last] = [at >> 1, last >> 1];
  }
  return hash;
}
