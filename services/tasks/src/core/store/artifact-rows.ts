import { bytes, flag, integer, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";
import type { ArtifactRecord } from "../rules/artifact.ts";

const PIECE_ROW = row({ start: integer, data: bytes });

const ARTIFACT_ROW = row({
  artifact_id: text,
  task_id: text,
  name: text,
  media_type: text,
  size: integer,
  sha256: text,
  written: integer,
  whole: flag,
  maker: text,
  organization: text,
  is_result: flag,
  create_ms: integer,
});
/**
 * Statements name these columns. A replica of this version can therefore read the table after a later version has added
 * a column.
 */
const ARTIFACT_COLUMNS =
  "artifact_id, task_id, name, media_type, size, sha256, written, whole, maker, organization, is_result, create_ms";
type ArtifactRow = RowOf<typeof ARTIFACT_ROW>;

const toRecord = (row: ArtifactRow): ArtifactRecord => ({
  id: row.artifact_id,
  taskId: row.task_id,
  name: row.name,
  mediaType: row.media_type,
  size: row.size,
  sha256: row.sha256,
  written: row.written,
  isWhole: row.whole === 1,
  maker: row.maker,
  organization: row.organization,
  isResult: row.is_result === 1,
  createMs: row.create_ms,
});

export async function readArtifact(tx: ReadTx, id: string): Promise<ArtifactRecord | undefined> {
  const row = await tx.get(
    ARTIFACT_ROW,
    `SELECT ${ARTIFACT_COLUMNS} FROM task_artifacts WHERE artifact_id = ?`,
    [id],
  );
  return row && toRecord(row);
}

/** Returns a task's artifacts, oldest first. MAX_ARTIFACTS bounds their number, so the list has no pages. */
export async function listArtifacts(tx: ReadTx, taskId: string): Promise<ArtifactRecord[]> {
  const rows = await tx.all(
    ARTIFACT_ROW,
    `SELECT ${ARTIFACT_COLUMNS} FROM task_artifacts WHERE task_id = ? ORDER BY artifact_id`,
    [taskId],
  );
  return rows.map(toRecord);
}

export async function insertArtifact(tx: WriteTx, artifact: ArtifactRecord): Promise<void> {
  await tx.run(
    `INSERT INTO task_artifacts (artifact_id, task_id, name, media_type, size, sha256, written, whole, maker, organization,
       is_result, create_ms)
     VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?)`,
    [
      artifact.id,
      artifact.taskId,
      artifact.name,
      artifact.mediaType,
      artifact.size,
      artifact.sha256,
      artifact.maker,
      artifact.organization,
      artifact.isResult ? 1 : 0,
      artifact.createMs,
    ],
  );
}

/** Stores the next bytes of an artifact. */
export async function appendBytes(tx: WriteTx, artifact: ArtifactRecord, data: Uint8Array): Promise<void> {
  const { id, taskId, written } = artifact;
  await tx.run("INSERT INTO task_artifact_bytes (artifact_id, task_id, start, data) VALUES (?, ?, ?, ?)", [
    id,
    taskId,
    written,
    data,
  ]);
  await tx.run("UPDATE task_artifacts SET written = ? WHERE artifact_id = ?", [written + data.length, id]);
}

/** Reads the stored piece that contains the byte at an offset, and the offset at which the piece begins. */
export async function readPiece(tx: ReadTx, id: string, offset: number) {
  return tx.get(
    PIECE_ROW,
    "SELECT start, data FROM task_artifact_bytes WHERE artifact_id = ? AND start <= ? ORDER BY start DESC LIMIT 1",
    [id, offset],
  );
}

export async function markWhole(tx: WriteTx, id: string): Promise<void> {
  await tx.run("UPDATE task_artifacts SET whole = 1 WHERE artifact_id = ?", [id]);
}

/** Deletes the bytes of an artifact, so that the caller can write them again. */
export async function dropBytes(tx: WriteTx, id: string): Promise<void> {
  await tx.run("DELETE FROM task_artifact_bytes WHERE artifact_id = ?", [id]);
  await tx.run("UPDATE task_artifacts SET written = 0 WHERE artifact_id = ?", [id]);
}
