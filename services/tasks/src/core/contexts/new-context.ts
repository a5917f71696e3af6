import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  type ShareContextRequest,
  ShareContextRequestSchema,
} from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { type ContextEnvelope, ContextEnvelopeSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, invalid, newId, parseStrictJson } from "@depute/core";
import { messageDigest } from "@depute/service";
import type { WriteTx } from "@depute/store";
import { type ContextRecord, endOf, MAX_CONTEXT_MS, type Reader, ttlMsOf } from "../rules/context.ts";
import { checkValue, MAX_VALUE_BYTES } from "../rules/values.ts";
import { freeContextIds, insertContext } from "../store/context-rows.ts";
import type { ContextMemory } from "./context-memory.ts";

/**
 * Refuses an envelope whose data is no JSON that a worker can get, or whose time is too long.
 *
 * @param field where the envelope stands in the request
 * @throws DeputeError INVALID_REQUEST, LIMIT_EXCEEDED
 */
export function checkEnvelope(envelope: ContextEnvelope, field: string): void {
  let value: Value;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(envelope.data);
    value = fromJson(ValueSchema, parseStrictJson(text) as JsonValue);
  } catch (error) {
    throw invalid(`${field}.data`, `is not JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  checkValue(value, `${field}.data`, MAX_VALUE_BYTES);
  if (ttlMsOf(envelope) > MAX_CONTEXT_MS) throw invalid(`${field}.ttl_s`, "is more than 30 days");
}

/**
 * A context that begins now.
 *
 * @param request what shares it; without a request id for one that comes with a task
 */
export function newContext(
  request: ShareContextRequest,
  owner: string,
  readers: readonly Reader[],
  nowMs: number,
): ContextRecord {
  const envelope = request.envelope ?? create(ContextEnvelopeSchema);
  const id = newId();
  return {
    id,
    externalId: envelope.id ?? "",
    owner,
    // An owner's contexts are told apart by their requests, so one without a request of its own gets a name that no other has.
    requestId: request.requestId || id,
    digest: messageDigest(ShareContextRequestSchema, { ...request, requestId: "" }),
    // Readers are not told what their owners made it of.
    envelope: { ...envelope, derivedFrom: [] },
    readers,
    derivedFrom: [...new Set([...request.derivedFrom, ...envelope.derivedFrom])],
    createMs: nowMs,
    expireMs: nowMs + ttlMsOf(envelope),
    isRevoked: false,
    dataIn: envelope.permissions?.persist === true ? "store" : "memory",
  };
}

/** The refusal of an id that an owner has given to something else. */
export function contextIdTaken(context: string): DeputeError {
  return new DeputeError(ErrorReason.CONTEXT_ID_TAKEN, "the id is that of another context", {
    metadata: { context },
  });
}

/**
 * Keeps contexts where they may be kept. To be called last in a transaction: what is held in memory is not rolled back.
 *
 * @throws DeputeError LIMIT_EXCEEDED
 */
export async function keepContexts(
  tx: WriteTx,
  memory: ContextMemory,
  records: readonly ContextRecord[],
): Promise<void> {
  for (const record of records) await insertContext(tx, record);
  memory.add(records.filter(({ dataIn }) => dataIn === "memory"));
}

/**
 * The context under an id of its owner's, unless its time has passed or its process has ended: then another one may have the id.
 * One that was revoked keeps its id, so that nobody brings it back by repeating a call.
 */
export async function orGivesWay(
  tx: WriteTx,
  there: ContextRecord | undefined,
  nowMs: number,
): Promise<ContextRecord | undefined> {
  if (there === undefined) return undefined;
  const end = endOf(there, nowMs);
  if (end === undefined || end === "revoked") return there;
  await freeContextIds(tx, there);
  return undefined;
}
