import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type RevocationCheckpoint,
  RevocationCheckpointSchema,
} from "@depute/contracts/depute/tokens/v1/revocation_service_pb";
import { type LogHead, LogHeadSchema } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import type {
  PublishLogHeadRequestSchema,
  WitnessedPlatform,
} from "@depute/contracts/depute/verifier/v1/witness_service_pb";
import {
  decodeBase64Url,
  encodeBase64Url,
  formatTime,
  fromTimestamp,
  parseTime,
  toTimestamp,
} from "@depute/core";

/** The names of a platform's logs, which are also the names of their heads. */
export type LogName = "revocations" | "transparency";

/** The type of a head in the request of PublishLogHead. */
type HeadOfRequest = NonNullable<MessageInitShape<typeof PublishLogHeadRequestSchema>["head"]>;

/**
 * Parses the text of a head. Returns its message, and the number of the log's entries.
 *
 * @throws Error if the text is not a head of the log
 */
export function toHead(name: LogName, text: string): { readonly head: HeadOfRequest; readonly size: number } {
  const value = JSON.parse(text) as Record<string, unknown>;
  const signature = bytesOf(value.signature);
  if (name === "transparency") {
    const { log, treeSize, rootHash, time } = value;
    const head = create(LogHeadSchema, {
      ...{ log: String(log), treeSize: BigInt(Number(treeSize)), rootHash: bytesOf(rootHash) },
      ...{ headTime: toTimestamp(Number(time)), signature },
    });
    return { head: { case: "logHead", value: head }, size: Number(treeSize) };
  }
  const { sequence, head, signedAt, signer, rootChange = 0, rootChangeSignature = "" } = value;
  const checkpoint = create(RevocationCheckpointSchema, {
    ...{ sequence: BigInt(Number(sequence)), head: String(head), signer: String(signer) },
    ...{ signTime: toTimestamp(parseTime(String(signedAt)) ?? 0), signature },
    ...{ rootChange: BigInt(Number(rootChange)), rootChangeSignature: bytesOf(rootChangeSignature) },
  });
  return { head: { case: "revocationCheckpoint", value: checkpoint }, size: Number(sequence) };
}

/** Returns the text of a log's head in a record; undefined if the record has no head of this log. */
export function textOf(name: LogName, record: WitnessedPlatform | undefined): string | undefined {
  const { logHead, revocationCheckpoint } = record ?? {};
  if (name === "transparency") return logHead && textOfLog(logHead);
  return revocationCheckpoint && textOfCheckpoint(revocationCheckpoint);
}

function textOfLog({ log, treeSize, rootHash, headTime, signature }: LogHead): string {
  return JSON.stringify({
    ...{ log, treeSize: Number(treeSize), rootHash: encodeBase64Url(rootHash) },
    ...{ time: headTime && fromTimestamp(headTime), signature: encodeBase64Url(signature) },
  });
}

function textOfCheckpoint(checkpoint: RevocationCheckpoint): string {
  const { sequence, head, signTime, signer, signature, rootChange, rootChangeSignature } = checkpoint;
  return JSON.stringify({
    ...{ sequence: Number(sequence), head, signer },
    signedAt: signTime && formatTime(fromTimestamp(signTime)),
    signature: encodeBase64Url(signature),
    ...(rootChange > 0n && {
      rootChange: Number(rootChange),
      rootChangeSignature: encodeBase64Url(rootChangeSignature),
    }),
  });
}

function bytesOf(text: unknown): Uint8Array {
  const bytes = decodeBase64Url(String(text));
  if (bytes === undefined) throw new Error("the head is malformed");
  return bytes;
}
