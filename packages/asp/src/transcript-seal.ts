import { create } from "@bufbuild/protobuf";
import {
  type Transcript,
  type TranscriptEntry,
  TranscriptEntrySchema,
  type TranscriptLogProof,
  TranscriptParticipantSchema,
  type TranscriptSeal,
  TranscriptSealSchema,
} from "@depute/contracts/asp/v0/transcript_pb";
import { canonicalBytes, decodeBase64Url, decodeHex, encodeHex, formatTime, parseTime } from "@depute/core";
import type { CryptoEngine, Keypair } from "@depute/dct";
import {
  leafHash,
  logEntryBytes,
  type SessionHead,
  sessionHeadBytes,
  sessionHeadDocument,
  verifyInclusion,
  verifyLogHead,
} from "@depute/dct/transparency";
import { encode } from "@depute/wire";
import { stateName } from "./read-transcript.ts";

/** Separates seals from the platform's other signatures: a seal's signature covers this tag first. */
export const SEAL_TAG = "delegateos-asp-transcript-v1\0";

const HASH = "sha256:";
const SIGNATURE = "ed25519:";
const tag = new TextEncoder().encode(SEAL_TAG);

/** The keys of a platform in base64url, as its TranscriptKeys document publishes them. */
export interface PlatformKeys {
  readonly sealKeys: readonly string[];
  readonly logKeys: readonly string[];
}

/**
 * Returns the hash of one transcript entry, for the list of entries that a session head covers.
 *
 * @throws CanonicalError, WireEncodeError for a message that has no JSON form
 */
export function entryHash(engine: CryptoEngine, entry: TranscriptEntry): string {
  return hashText(engine.sha256(canonicalBytes(encode(TranscriptEntrySchema, entry))));
}

/**
 * Computes the session head of a transcript, which the platform adds to its transparency log. All exports of a
 * session with the same latest message have the same head.
 *
 * @param entryHashes entryHash of each message, in order
 * @throws CanonicalError, WireEncodeError for a participant that has no JSON form
 */
export function sessionHead(
  engine: CryptoEngine,
  { format, lastHash, participants, sessionId }: Transcript,
  entryHashes: readonly string[],
): SessionHead {
  const record = canonicalBytes({
    format,
    lastHash,
    messages: [...entryHashes],
    participants: participants.map((participant) => encode(TranscriptParticipantSchema, participant)),
    sessionId,
  });
  return { sessionId, length: entryHashes.length, lastHash, recordHash: hashText(engine.sha256(record)) };
}

/**
 * Adds a seal to an exported transcript.
 *
 * @param log the proof that the head is in the transparency log
 * @param keypair the platform's sealing key, which signs nothing else
 */
export function sealTranscript(
  engine: CryptoEngine,
  transcript: Transcript,
  head: SessionHead,
  log: TranscriptLogProof,
  { principal, privateKey }: Keypair,
): Transcript {
  const signature = engine.sign(signedBytes(transcript, head, principal.id), privateKey);
  const seal = create(TranscriptSealSchema, {
    key: principal.id,
    recordHash: head.recordHash,
    signature: signatureText(signature),
    log,
  });
  return { ...transcript, seal };
}

/** The result of checking a seal: valid, or the fault. */
export type SealVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: "wrong_seal" | "unknown_seal_key"; readonly detail: string };

/**
 * Checks the seal of a transcript offline: its signature over head, state and export time, and the proof that the
 * transparency log contains the head. Never throws.
 *
 * @param head sessionHead of the transcript
 * @param keys the platform's keys that the reader trusts
 */
export function verifySeal(
  engine: CryptoEngine,
  transcript: Transcript,
  seal: TranscriptSeal,
  head: SessionHead,
  keys: PlatformKeys,
): SealVerdict {
  if (!keys.sealKeys.includes(seal.key)) {
    return unknownKey("the key of the seal is not a key of the platform");
  }
  if (head.recordHash !== seal.recordHash) return wrong("the messages differ from the sealed messages");
  const signature = hexOf(seal.signature, SIGNATURE);
  const key = decodeBase64Url(seal.key);
  const isSigned =
    signature !== undefined &&
    key !== undefined &&
    engine.verify(signature, signedBytes(transcript, head, seal.key), key);
  if (!isSigned) return wrong("the state, the export time or the head differs from the sealed values");
  if (seal.log === undefined) return wrong("the proof of the transparency log is missing");
  if (!keys.logKeys.includes(seal.log.logKey)) {
    return unknownKey("the proof comes from a log that is not the platform's");
  }
  if (isLogged(engine, head, seal.log)) return { ok: true };
  return wrong("the proof does not show that the transparency log contains the head");
}

/**
 * Whether the transparency log contains the session head, according to the proof and a signed head of the
 * log.
 */
function isLogged(engine: CryptoEngine, head: SessionHead, proof: TranscriptLogProof): boolean {
  const time = exactTime(proof.loggedAt);
  const signedMs = exactTime(proof.signedAt);
  const root = hexOf(proof.rootHash, HASH);
  const hashes = proof.hashes.map((hash) => hexOf(hash, HASH));
  const signature = hexOf(proof.signature, SIGNATURE);
  if (time === undefined || signedMs === undefined || root === undefined || signature === undefined)
    return false;
  if (!hashes.every((hash) => hash !== undefined)) return false;
  const treeSize = Number(proof.treeSize);
  const state = { log: proof.logKey, treeSize, rootHash: root, time: signedMs };
  if (!verifyLogHead(engine, state, signature)) return false;
  const digest = engine.sha256(sessionHeadBytes(head));
  const leaf = leafHash(engine.sha256, logEntryBytes({ kind: "session_head", digest, time }));
  return verifyInclusion(engine.sha256, { index: Number(proof.index), treeSize, leaf, root, proof: hashes });
}

function signedBytes({ exportedAt, state }: Transcript, head: SessionHead, key: string): Uint8Array {
  const body = canonicalBytes({ exportedAt, head: sessionHeadDocument(head), key, state: stateName(state) });
  const bytes = new Uint8Array(tag.length + body.length);
  bytes.set(tag);
  bytes.set(body, tag.length);
  return bytes;
}

/**
 * Parses a time, in the only form that the platform writes, to epoch milliseconds. Returns undefined for other forms,
 * because the signature covers the number and not the text.
 */
function exactTime(text: string): number | undefined {
  const ms = parseTime(text);
  return ms !== undefined && formatTime(ms) === text ? ms : undefined;
}

/** Converts a hash or a tree root to the text form that transcripts use. */
export function hashText(bytes: Uint8Array): string {
  return `${HASH}${encodeHex(bytes)}`;
}

/** Converts a signature to the text form that transcripts use. */
export function signatureText(bytes: Uint8Array): string {
  return `${SIGNATURE}${encodeHex(bytes)}`;
}

function hexOf(text: string, prefix: string): Uint8Array | undefined {
  return text.startsWith(prefix) ? decodeHex(text.slice(prefix.length)) : undefined;
}

function wrong(detail: string): SealVerdict {
  return { ok: false, code: "wrong_seal", detail };
}

function unknownKey(detail: string): SealVerdict {
  return { ok: false, code: "unknown_seal_key", detail };
}
