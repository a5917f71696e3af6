import { isObject } from "@depute/core";
import type { CryptoEngine } from "../engine.ts";
import { isRooted, type RootedAuditSeal, rootedAuditSealBytes } from "./audit-seal.ts";
import { logEntryBytes } from "./log-entry.ts";
import { type LogHead, verifyLogHead } from "./log-head.ts";
import { leafHash, verifyInclusion } from "./merkle.ts";

/** The proof that a transparency log contains the seal of a day. */
export interface AuditSealInclusion {
  /** The position of the seal's leaf in the log, from 0. */
  readonly index: number;
  /** The time at which the leaf was appended, in milliseconds since 1970. */
  readonly appendTime: number;
  /** The audit path from the leaf to the root of the head. */
  readonly hashes: readonly Uint8Array[];
  readonly head: LogHead;
  readonly signature: Uint8Array;
}

/** The proof of one record of an audit log. */
export interface AuditProof {
  /** The record as canonical JSON, in UTF-8. */
  readonly line: Uint8Array;
  /** The seal of the record's day. */
  readonly seal: RootedAuditSeal;
  /** The audit path from the record to the root of the seal. */
  readonly hashes: readonly Uint8Array[];
  readonly inclusion: AuditSealInclusion;
}

/** Returns why a proof of an audit record is invalid; undefined for a valid proof. Never throws. */
export function faultOfAuditProof(
  engine: CryptoEngine,
  { line, seal, hashes, inclusion }: AuditProof,
): string | undefined {
  const { sha256 } = engine;
  const sequence = sequenceOfLine(line);
  if (sequence === undefined) return "its line is no audit record";
  const { day, firstSequence, lastSequence } = seal;
  if (!isRooted(seal)) return `the seal of ${day} has no root`;
  if (sequence < firstSequence || sequence > lastSequence)
    return `record ${sequence} is not a record of ${day}`;
  const isInSeal = verifyInclusion(sha256, {
    ...{ index: sequence - firstSequence, treeSize: lastSequence - firstSequence + 1 },
    ...{ leaf: leafHash(sha256, line), root: seal.rootHash, proof: hashes },
  });
  if (!isInSeal) return `record ${sequence} is not in the seal of ${day}`;
  const { index, appendTime: time, head } = inclusion;
  const digest = sha256(rootedAuditSealBytes(seal));
  const isInLog = verifyInclusion(sha256, {
    ...{ index, treeSize: head.treeSize, root: head.rootHash, proof: inclusion.hashes },
    leaf: leafHash(sha256, logEntryBytes({ kind: "audit_seal", digest, time })),
  });
  if (!isInLog) return `the seal of ${day} is not in the transparency log`;
  if (!verifyLogHead(engine, head, inclusion.signature)) return `the log ${head.log} did not sign its head`;
  return undefined;
}

/** Returns the sequence that an audit record states; undefined for bytes that are no record. Never throws. */
export function sequenceOfLine(line: Uint8Array): number | undefined {
  try {
    const record: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(line));
    const sequence = isObject(record) ? Number(record.sequence) : Number.NaN;
    return Number.isSafeInteger(sequence) ? sequence : undefined;
  } catch {
    // The bytes are not UTF-8 or not JSON.
    return undefined;
  }
}
