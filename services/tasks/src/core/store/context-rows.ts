import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ContextEnvelopeSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { bytes, flag, integer, oneOf, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { ContextRecord, DataPlace, Reader } from "../rules/context.ts";

const READER_ROW = row({ agent_id: text, principal: text });
const SOURCE_ID_ROW = row({ source_id: text });
const CONTEXT_ID_ROW = row({ context_id: text });
const MEMORY_ROW = row({ expire_ms: integer, context_id: text });
const TASK_ID_ROW = row({ task_id: text });

const CONTEXT_ROW = row({
  context_id: text,
  owner: text,
  organization: text,
  external_id: text,
  request_id: text,
  digest: text,
  envelope: bytes,
  create_ms: integer,
  expire_ms: integer,
  revoked: flag,
  data_in: oneOf<DataPlace>("store", "memory", "nowhere"),
});
/**
 * Statements name these columns. A replica of this version can therefore read the table after a later version has added
 * a column.
 */
const CONTEXT_COLUMNS =
  "context_id, owner, organization, external_id, request_id, digest, envelope, create_ms, expire_ms, revoked, data_in";

/** The data of contexts that the store must not hold, by context id. */
export interface HeldData {
  find(id: string): { readonly digest: string; readonly data: Uint8Array } | undefined;
}

const NO_DATA = new Uint8Array();

/** Stands for the memory in statements that need no data. */
const NO_HELD_DATA: HeldData = { find: () => undefined };

/** Reads a context with its data, which may be in the store or in memory. */
export async function readContext(
  tx: ReadTx,
  memory: HeldData,
  id: string,
): Promise<ContextRecord | undefined> {
  return readWhere(tx, memory, "context_id = ?", [id]);
}

/** Finds an owner's context by the external id that the owner gave it. */
export async function findContext(tx: ReadTx, memory: HeldData, owner: string, externalId: string) {
  return readWhere(tx, memory, "owner = ? AND external_id = ? AND external_id <> ''", [owner, externalId]);
}

/** Finds the context that an owner shared under a request id. */
export async function findContextOfRequest(tx: ReadTx, memory: HeldData, owner: string, requestId: string) {
  return readWhere(tx, memory, "owner = ? AND request_id = ?", [owner, requestId]);
}

async function readWhere(
  tx: ReadTx,
  memory: HeldData,
  where: string,
  params: string[],
): Promise<ContextRecord | undefined> {
  const row = await tx.get(CONTEXT_ROW, `SELECT ${CONTEXT_COLUMNS} FROM contexts WHERE ${where}`, params);
  if (row === undefined) return undefined;
  const id = row.context_id;
  const readers = await tx.all(
    READER_ROW,
    "SELECT agent_id, principal FROM context_readers WHERE context_id = ? ORDER BY agent_id",
    [id],
  );
  const sources = await tx.all(
    SOURCE_ID_ROW,
    "SELECT source_id FROM context_sources WHERE context_id = ? ORDER BY source_id",
    [id],
  );
  const stored = fromBinary(ContextEnvelopeSchema, row.envelope);
  const memoryRecord = row.data_in === "memory" ? memory.find(id) : undefined;
  return {
    id,
    externalId: row.external_id,
    owner: row.owner,
    organization: row.organization,
    requestId: row.request_id,
    digest: memoryRecord?.digest ?? row.digest,
    envelope: memoryRecord === undefined ? stored : { ...stored, data: memoryRecord.data },
    readers: readers.map(({ agent_id, principal }) => ({ agentId: agent_id, principal })),
    derivedFrom: sources.map(({ source_id }) => source_id),
    createMs: row.create_ms,
    expireMs: row.expire_ms,
    isRevoked: row.revoked === 1,
    dataIn: row.data_in === "memory" && memoryRecord === undefined ? "nowhere" : row.data_in,
  };
}

/** Stores a context. If only memory holds the data, the row has neither the data nor the digest. */
export async function insertContext(tx: WriteTx, record: ContextRecord): Promise<void> {
  const isStored = record.dataIn === "store";
  await tx.run(
    `INSERT INTO contexts
       (context_id, owner, organization, external_id, request_id, digest, envelope, create_ms, expire_ms, revoked,
        data_in)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`,
    [
      record.id,
      record.owner,
      record.organization,
      record.externalId,
      record.requestId,
      isStored ? record.digest : "",
      isStored ? toBinary(ContextEnvelopeSchema, record.envelope) : withoutData(record),
      record.createMs,
      record.expireMs,
      record.dataIn,
    ],
  );
  for (const reader of record.readers) await insertReader(tx, record.id, reader);
  for (const source of new Set(record.derivedFrom)) {
    await tx.run("INSERT INTO context_sources (context_id, source_id) VALUES (?, ?)", [record.id, source]);
  }
}

function withoutData({ envelope }: ContextRecord): Uint8Array {
  return toBinary(ContextEnvelopeSchema, { ...envelope, data: NO_DATA });
}

/** Returns the contexts that were derived from a source context. */
export async function readDerived(tx: ReadTx, memory: HeldData, sourceId: string): Promise<ContextRecord[]> {
  const rows = await tx.all(
    CONTEXT_ID_ROW,
    "SELECT context_id FROM context_sources WHERE source_id = ? ORDER BY context_id",
    [sourceId],
  );
  const derived: ContextRecord[] = [];
  for (const { context_id: id } of rows) {
    const record = await readContext(tx, memory, id);
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

/** Revokes a context and deletes its data. */
export async function revokeContext(tx: WriteTx, record: ContextRecord): Promise<void> {
  await tx.run("UPDATE contexts SET revoked = 1 WHERE context_id = ?", [record.id]);
  await deleteData(tx, record);
}

/** Removes a context's external id and request id, so that another context can use these ids. */
export async function freeContextIds(tx: WriteTx, { id }: ContextRecord): Promise<void> {
  await tx.run("UPDATE contexts SET external_id = '', request_id = context_id WHERE context_id = ?", [id]);
}

async function deleteData(tx: WriteTx, record: ContextRecord): Promise<void> {
  await tx.run("UPDATE contexts SET data_in = 'nowhere', envelope = ? WHERE context_id = ?", [
    withoutData(record),
    record.id,
  ]);
}

/**
 * Deletes the data of expired contexts.
 *
 * @returns the number of contexts whose data was deleted
 */
export async function deleteExpiredData(tx: WriteTx, nowMs: number, limit: number): Promise<number> {
  let deleted = 0;
  for (const place of ["store", "memory"] as const) {
    const rows = await tx.all(
      CONTEXT_ID_ROW,
      `SELECT context_id FROM contexts WHERE data_in = ? AND data_in <> 'nowhere' AND expire_ms <= ?
       ORDER BY expire_ms, context_id LIMIT ?`,
      [place, nowMs, limit - deleted],
    );
    for (const { context_id: id } of rows) {
      const record = await readContext(tx, NO_HELD_DATA, id);
      if (record !== undefined) await deleteData(tx, record);
    }
    deleted += rows.length;
  }
  return deleted;
}

/**
 * Deletes the rows of contexts that expired before a time.
 *
 * @returns the number of deleted rows
 */
export async function deleteContexts(tx: WriteTx, expireMs: number, limit: number): Promise<number> {
  const rows = await tx.all(
    CONTEXT_ID_ROW,
    "SELECT context_id FROM contexts WHERE expire_ms <= ? ORDER BY expire_ms, context_id LIMIT ?",
    [expireMs, limit],
  );
  for (const { context_id: id } of rows) await deleteContextRows(tx, id);
  return rows.length;
}

/** Deletes a context with its readers and sources. */
export async function deleteContextRows(tx: WriteTx, id: string): Promise<void> {
  await tx.run("DELETE FROM context_readers WHERE context_id = ?", [id]);
  await tx.run("DELETE FROM context_sources WHERE context_id = ?", [id]);
  await tx.run("DELETE FROM contexts WHERE context_id = ?", [id]);
}

/** A position in the list of contexts whose data is in memory. */
export interface MemoryPlace {
  readonly expireMs: number;
  readonly id: string;
}

/**
 * Returns the positions of contexts whose data is in memory, in the order in which they expire. Starts after a
 * position.
 */
export async function contextsInMemory(
  tx: ReadTx,
  after: MemoryPlace,
  limit: number,
): Promise<MemoryPlace[]> {
  const rows = await tx.all(
    MEMORY_ROW,
    `SELECT expire_ms, context_id FROM contexts
     WHERE data_in = 'memory' AND data_in <> 'nowhere' AND (expire_ms > ? OR expire_ms = ? AND context_id > ?)
     ORDER BY expire_ms, context_id LIMIT ?`,
    [after.expireMs, after.expireMs, after.id, limit],
  );
  return rows.map(({ expire_ms, context_id }) => ({ expireMs: expire_ms, id: context_id }));
}

/** Whether the row of a context states that its data is in memory. */
export async function isInMemory(tx: ReadTx, id: string): Promise<boolean> {
  const sql = "SELECT context_id FROM contexts WHERE context_id = ? AND data_in = 'memory'";
  return (await tx.get(CONTEXT_ID_ROW, sql, [id])) !== undefined;
}

/** Records that a context's data was lost from memory. */
export async function noteLost(tx: WriteTx, id: string): Promise<void> {
  await tx.run("UPDATE contexts SET data_in = 'nowhere' WHERE context_id = ?", [id]);
}

/** Stores the ids of the contexts that a task carries. */
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
  const rows = await tx.all(
    CONTEXT_ID_ROW,
    "SELECT context_id FROM task_contexts WHERE task_id = ? ORDER BY number",
    [taskId],
  );
  return rows.map((row) => row.context_id);
}

/** Returns the ids of the tasks that carry a context. */
export async function readCarriers(tx: ReadTx, contextId: string): Promise<string[]> {
  const rows = await tx.all(
    TASK_ID_ROW,
    "SELECT task_id FROM task_contexts WHERE context_id = ? ORDER BY task_id",
    [contextId],
  );
  return rows.map((row) => row.task_id);
}
