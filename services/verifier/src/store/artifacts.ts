import { bytes, FOUND, integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

const COUNT_BYTES_ROW = row({ count: integer, bytes: integer });

export interface ArtifactRow {
  content: Uint8Array;
  mediaType: string;
  /** The organization that owns the artifact; empty without an organization. */
  organization: string;
}

const ARTIFACT_ROW = row<ArtifactRow>({ content: bytes, mediaType: text, organization: text });

export function getArtifact(tx: ReadTx, digest: string): Promise<ArtifactRow | undefined> {
  return tx.get(
    ARTIFACT_ROW,
    `SELECT content, media_type AS "mediaType", organization FROM artifacts WHERE digest = ?`,
    [digest],
  );
}

export async function hasArtifact(tx: ReadTx, digest: string): Promise<boolean> {
  return (await tx.get(FOUND, "SELECT 1 AS found FROM artifacts WHERE digest = ?", [digest])) !== undefined;
}

/** Returns the number and the total bytes of the artifacts that a principal has stored. */
export async function usageOf(tx: ReadTx, owner: string): Promise<{ count: number; bytes: number }> {
  const row = await tx.get(COUNT_BYTES_ROW, "SELECT count, bytes FROM artifact_owners WHERE owner = ?", [
    owner,
  ]);
  return row ?? { count: 0, bytes: 0 };
}

export async function insertArtifact(
  tx: WriteTx,
  digest: string,
  { content, mediaType, organization }: ArtifactRow,
  owner: string,
  now: number,
): Promise<void> {
  await tx.run(
    "INSERT INTO artifacts (digest, content, media_type, owner, organization, create_ms) VALUES (?, ?, ?, ?, ?, ?)",
    [digest, content, mediaType, owner, organization, now],
  );
  await tx.run(
    `INSERT INTO artifact_owners (owner, count, bytes) VALUES (?, 1, ?)
     ON CONFLICT (owner) DO UPDATE SET count = artifact_owners.count + 1,
       bytes = artifact_owners.bytes + excluded.bytes`,
    [owner, content.length],
  );
}
