import type { StoreClient } from "./client.ts";
import { databaseUnavailable } from "./errors.ts";

const REMEDY =
  "Depute keeps locks, settings and notifications in its sessions; set DEPUTE_POSTGRES_URL to the address of Postgres itself";

/** The error code for a connection whose parameters are refused: protocol_violation. */
const PROTOCOL_VIOLATION = "08P01";

/** Whether a pooler refused a connection because the pooler does not pass the search path to Postgres. */
export function isRefusedByPooler(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return code === PROTOCOL_VIOLATION && String(message).includes("startup parameter");
}

/** Returns the error for a refusal that `isRefusedByPooler` recognizes. */
export function refusedByPooler(cause: unknown): Error {
  return databaseUnavailable(
    cause,
    `a pooler such as PgBouncer refuses the search path of a session: ${REMEDY}`,
  );
}

/**
 * Ensures that a connection has a Postgres session that no other connection uses. A pooler in transaction mode lets
 * another connection use the session of an idle connection, together with the locks of the schema's owner.
 *
 * @param open opens a second connection with the same configuration
 * @throws DeputeError DEPENDENCY_UNAVAILABLE if a pooler drops the search path, or shares sessions; errors of `open`;
 * node-postgres' own errors
 */
export async function assertOwnSession(
  client: StoreClient,
  schema: string,
  open: () => Promise<StoreClient>,
): Promise<void> {
  const { rows } = await client.query<{ path: string }>("SELECT current_setting('search_path') AS path");
  if (rows[0]?.path !== schema)
    throw databaseUnavailable(
      undefined,
      `the session has the search path ${rows[0]?.path}, not ${schema}, as behind a pooler such as PgBouncer: ${REMEDY}`,
    );
  const session = await sessionOf(client);
  const second = await open();
  try {
    // The open transaction keeps its Postgres session. If the pooler shares sessions, the first connection therefore
    // gets another session.
    await second.query("BEGIN");
    const isShared = (await sessionOf(second)) === session || (await sessionOf(client)) !== session;
    await second.query("ROLLBACK");
    if (isShared)
      throw databaseUnavailable(
        undefined,
        `a pooler such as PgBouncer in transaction mode shares sessions between connections: ${REMEDY}`,
      );
  } finally {
    await second.end().catch(() => {});
  }
}

/** Returns the Postgres process id of the connection's session. */
async function sessionOf(client: StoreClient): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return rows[0]?.pid;
}
