import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ContextEnvelopeSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import type { ReadTx, WriteTx } from "@depute/store";
import type { ContextRecord, Reader } from "../rules/context.ts";

interface ContextRow {
  context_id: string;
  owner: string;
  external_id: string;
  request_id: string;
  digest: string;
  envelope: Uint8Array;
  create_ms: number;
  expire_ms: number;
  revoked: number;
}

/** Contexts that are over are forgotten a few at a time, when others are shared. */
const FORGET_BATCH = 100;

export async function readContext(tx: ReadTx, id: string): Promise<ContextRecord | undefined> {
  return readWhere(tx, "context_id = ?", [id]);
}

/** An owner's context by its own id for it. */
export async function findContext(tx: ReadTx, owner: string, externalId: string) {
  return readWhere(tx, "owner = ? AND external_id = ? AND external_id <> ''", [owner, externalId]);
}

/** The context that a request of an owner's shared. */
export async function findContextOfRequest(tx: ReadTx, owner: string, requestId: string) {
  return readWhere(tx, "owner = ? AND request_id = ?", [owner, requestId]);
}

async function readWhere(tx: ReadTx, where: string, params: string[]): Promise<ContextRecord | undefined> {
  const row = await tx.get<ContextRow>(`SELECT * FROM contexts WHERE ${where}`, params);
  if (row === undefined) return undefined;
  const readers = await tx.all<{ agent_id: string; principal: string }>(
    "SELECT agent_id, principal FROM context_readers WHERE context_id = ? ORDER BY agent_id",
    [row.context_id],
  );
  return {
    id: row.context_id,
    externalId: row.external_id,
    owner: row.owner,
    requestId: row.request_id,
    digest: row.digest,
    envelope: fromBinary(ContextEnvelopeSchema, row.envelope),
    readers: readers.map(({ agent_id, principal }) => ({ agentId: agent_id, principal })),
    // Looked up the other way round only.
    derivedFrom: [],
    createMs: row.create_ms,
    expireMs: row.expire_ms,
    isRevoked: row.revoked === 1,
  };
}

export async function insertContext(tx: WriteTx, record: ContextRecord): Promise<void> {
  await tx.run(
    `INSERT INTO contexts (context_id, owner, external_id, request_id, digest, envelope, create_ms, expire_ms, revoked)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)`,
    [
      record.id,
      record.owner,
      record.externalId,
      record.requestId,
      record.digest,
      toBinary(ContextEnvelopeSchema, record.envelope),
      record.createMs,
      record.expireMs,
    ],
  );
  for (const reader of record.readers) await insertReader(tx, record.id, reader);
  for (const source of new Set(record.derivedFrom)) {
    await tx.run("INSERT INTO context_sources (context_id, source_id) VALUES (?, ?)", [record.id, source]);
  }
}

/** The stored contexts that were made of another one. */
export async function readDerived(tx: ReadTx, sourceId: string): Promise<ContextRecord[]> {
  const rows = await tx.all<{ context_id: string }>(
    "SELECT context_id FROM context_sources WHERE source_id = ? ORDER BY context_id",
    [sourceId],
  );
  const derived: ContextRecord[] = [];
  for (const { context_id: id } of rows) {
    const record = await readContext(tx, id);
    if (record !== undefined) derived.push(record);
  }
  return derived;
}

export async function insertReader(tx: WriteTx, id: string, { agentId, principal }: Reader): Promise<void> {
  await tx.run(
    `INSERT INTO context_readers (context_id, agent_id, principal) VALUES (?, ?, ?)
     ON CONFLICT (context_id, agent_id) DO NOTHING`,
    [id, agentId, principal],
  );
}

/** Takes a context back: its data is gone. */
export async function revokeContext(tx: WriteTx, { id, envelope }: ContextRecord): Promise<void> {
  const empty = toBinary(ContextEnvelopeSchema, { ...envelope, data: new Uint8Array() });
  await tx.run("UPDATE contexts SET revoked = 1, envelope = ? WHERE context_id = ?", [empty, id]);
}

/** Forgets some of the contexts that are over. */
export async function forgetExpired(tx: WriteTx, nowMs: number): Promise<void> {
  const rows = await tx.all<{ context_id: string }>(
    "SELECT context_id FROM contexts WHERE expire_ms <= ? ORDER BY expire_ms LIMIT ?",
    [nowMs, FORGET_BATCH],
  );
  for (const { context_id: id } of rows) {
    await tx.run("DELETE FROM context_readers WHERE context_id = ?", [id]);
    await tx.run("DELETE FROM context_sources WHERE context_id = ?", [id]);
    await tx.run("DELETE FROM contexts WHERE context_id = ?", [id]);
  }
}

/** Notes which contexts go along with a task: their ids only. */
export async function insertTaskContexts(tx: WriteTx, taskId: string, ids: readonly string[]): Promise<void> {
  for (const [number, id] of ids.entries()) {
    await tx.run("INSERT INTO task_contexts (task_id, number, context_id) VALUES (?, ?, ?)", [
      taskId,
      number,
      id,
    ]);
  }
}

export async function readTaskContexts(tx: ReadTx, taskId: string): Promise<string[]> {
  const rows = await tx.all<{ context_id: string }>(
    "SELECT context_id FROM task_contexts WHERE task_id = ? ORDER BY number",
    [taskId],
  );
  return rows.map((row) => row.context_id);
}
