import type { JsonObject } from "@bufbuild/protobuf";
import { entryHash, exportTranscript, sessionHead, stateName } from "@depute/asp";
import { played, SealingPlatform } from "@depute/asp/testing";
import {
  type TranscriptEntry,
  TranscriptEntrySchema,
  TranscriptSchema,
} from "@depute/contracts/asp/v0/transcript_pb";
import { canonicalBytes, canonicalJson } from "@depute/core";
import { keypairFromSeed } from "@depute/dct";
import { sessionHeadDocument } from "@depute/dct/transparency";
import { encode } from "@depute/wire";
import { engine, hex, utf8, type VectorCase, type VectorFile } from "./shared.ts";

const STAGE = played();
const UNSEALED = exportTranscript(STAGE.session, STAGE.entries, STAGE.nowMs);
const PLATFORM = new SealingPlatform(engine);
const SEALED = documentOf(PLATFORM.seal(UNSEALED, STAGE.nowMs));
const HEAD = sessionHead(
  engine,
  UNSEALED,
  UNSEALED.messages.map((entry) => entryHash(engine, entry)),
);
const SEAL_SEED = engine.sha256(utf8("platform seal"));

function documentOf(transcript: typeof UNSEALED): JsonObject {
  return encode(TranscriptSchema, transcript) as JsonObject;
}

export function transcriptVectors(): VectorFile {
  return {
    specification: "transcripts.md",
    cases: [...UNSEALED.messages.map(entryVector), headVector(), sealVector(), ...verifications()],
  };
}

function entryVector(entry: TranscriptEntry): VectorCase {
  return {
    name: `entry ${entry.ordinal}`,
    operation: "entry-hash",
    input: { entry: encode(TranscriptEntrySchema, entry) },
    expected: { hash: entryHash(engine, entry) },
  };
}

function headVector(): VectorCase {
  const head = canonicalJson(sessionHeadDocument(HEAD));
  const digestHex = hex(engine.sha256(utf8(head)));
  return {
    name: "the head of a session",
    operation: "head",
    input: { transcript: documentOf(UNSEALED) },
    expected: { recordHash: HEAD.recordHash, head, digestHex },
  };
}

function sealVector(): VectorCase {
  const { principal, privateKey } = keypairFromSeed(engine, SEAL_SEED);
  const state = stateName(UNSEALED.state);
  const body = { exportedAt: UNSEALED.exportedAt, head: sessionHeadDocument(HEAD), key: principal.id, state };
  const signed = Uint8Array.from([...utf8("delegateos-asp-transcript-v1\0"), ...canonicalBytes(body)]);
  return {
    name: "the seal of a transcript",
    operation: "seal",
    input: { transcript: documentOf(UNSEALED), seedHex: hex(SEAL_SEED) },
    expected: {
      key: principal.id,
      signedHex: hex(signed),
      signature: `ed25519:${hex(engine.sign(signed, privateKey))}`,
    },
  };
}

/** A change of the sealed transcript: a path, and the new value there. */
type Change = readonly [name: string, path: readonly (string | number)[], value: unknown];

const CHANGES: readonly Change[] = [
  ["another state", ["state"], "CLOSED"],
  ["another time of the export", ["exportedAt"], "2026-03-07T15:59:59.000Z"],
  ["another time of a message", ["messages", 0, "receivedAt"], "2026-03-07T15:00:00.001Z"],
  ["another role", ["participants", 0, "role"], "counterparty"],
  ["another hash of the record", ["seal", "recordHash"], `sha256:${"0".repeat(64)}`],
  ["another size of the tree", ["seal", "log", "treeSize"], 8],
  ["another index", ["seal", "log", "index"], 5],
  ["another time in the log", ["seal", "log", "loggedAt"], "2026-03-07T15:00:00.001Z"],
  ["no hashes", ["seal", "log", "hashes"], []],
  ["a signature without its prefix", ["seal", "signature"], "00"],
  ["no last message", ["messages"], (SEALED.messages as unknown[]).slice(0, -1)],
];

function changed(path: readonly (string | number)[], value: unknown): unknown {
  const copy = structuredClone(SEALED) as Record<string | number, unknown>;
  let parent = copy;
  for (const name of path.slice(0, -1)) parent = parent[name] as typeof parent;
  parent[path.at(-1) ?? ""] = value;
  return copy;
}

function verifications(): VectorCase[] {
  const { sealKeys, logKeys } = PLATFORM.keys;
  const operation = "verify-seal";
  const honest = { transcript: SEALED, sealKeys, logKeys };
  const refusal = "unknown_seal_key";
  return [
    { name: "verify: an honest seal", operation, input: honest, expected: { sealed: true } },
    { name: "verify: an unknown sealing key", operation, input: { ...honest, sealKeys: logKeys }, refusal },
    {
      name: "verify: an unknown key of the log",
      operation,
      input: { ...honest, logKeys: sealKeys },
      refusal,
    },
    ...CHANGES.map(([name, path, value]) => ({
      name: `verify: ${name}`,
      operation,
      input: { ...honest, transcript: changed(path, value) },
      refusal: "wrong_seal",
    })),
  ];
}
