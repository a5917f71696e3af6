import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Agent, AgentSchema } from "@depute/contracts/depute/registry/v1/agent_pb";
import { bytes, integer, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";

/** A stored version of an agent's registration. The time is epoch milliseconds. */
export interface StoredVersion {
  readonly revision: number;
  readonly digest: string;
  readonly record: Agent;
  readonly createTime: number;
}

/** The ways to name a version of an agent: by number, by name or by digest. */
export type VersionReference =
  | { readonly revision: number }
  | { readonly version: string }
  | { readonly digest: string };

const VERSION_ROW = row({ revision: integer, digest: text, record: bytes, create_time: integer });
type VersionRow = RowOf<typeof VERSION_ROW>;

const COLUMNS = "revision, digest, record, create_time";

export async function findVersion(
  tx: ReadTx,
  agentId: string,
  reference: VersionReference,
): Promise<StoredVersion | undefined> {
  const [[column, value]] = Object.entries(reference) as [[string, string | number]];
  const row = await tx.get(
    VERSION_ROW,
    `SELECT ${COLUMNS} FROM agent_versions WHERE agent_id = ? AND ${column} = ?
     ORDER BY revision DESC LIMIT 1`,
    [agentId, value],
  );
  return row && toVersion(row);
}

/** Returns versions of an agent with revisions below `before`, latest first. */
export async function listVersions(
  tx: ReadTx,
  agentId: string,
  before: number,
  limit: number,
): Promise<StoredVersion[]> {
  const rows = await tx.all(
    VERSION_ROW,
    `SELECT ${COLUMNS} FROM agent_versions WHERE agent_id = ? AND revision < ? ORDER BY revision DESC LIMIT ?`,
    [agentId, before, limit],
  );
  return rows.map(toVersion);
}

/**
 * Inserts a version.
 *
 * @throws ConstraintError if the revision already exists
 */
export async function addVersion(tx: WriteTx, version: StoredVersion): Promise<void> {
  const { record } = version;
  await tx.run(
    `INSERT INTO agent_versions (agent_id, revision, version, digest, create_time, record)
     VALUES (?, ?, ?, ?, ?, ?)`,
    [
      record.id,
      version.revision,
      record.version,
      version.digest,
      version.createTime,
      toBinary(AgentSchema, record),
    ],
  );
}

function toVersion(row: VersionRow): StoredVersion {
  return {
    revision: row.revision,
    digest: row.digest,
    record: fromBinary(AgentSchema, row.record),
    createTime: row.create_time,
  };
}
