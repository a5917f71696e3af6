import { execFile } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { SettingsError } from "@depute/service";
import { findPostgresPrograms, postgresUser } from "@depute/store";
import { type Child, startChild } from "../processes.ts";

const TIED = fileURLToPath(new URL("../tied.ts", import.meta.url));
/** Maximum number of connections: enough for sixteen processes with three stores each. */
const MAX_CONNECTIONS = 400;

/** A Postgres on this machine whose data folder is beside the platform's data folder. */
export interface LocalPostgres {
  /** The URL of the database, over a UNIX socket. */
  readonly url: string;
  /** Starts the server, and resolves when it accepts connections. */
  start(): Promise<Child>;
  /** Removes the folder of the server's socket. Call this method after the server has ended. */
  removeSocket(): void;
}

/**
 * Prepares a Postgres for a cluster. Its data are in the folder `DATA_DIR-postgres`, which the first call creates. Only
 * the user of this process can connect.
 *
 * @throws SettingsError if Postgres is not installed, or cannot create its data in the folder
 */
export async function prepareLocalPostgres(dataDir: string): Promise<LocalPostgres> {
  const programs = findPostgresPrograms();
  if (programs === undefined)
    throw new SettingsError("replicas need Postgres: install it, or set DEPUTE_POSTGRES_URL");
  const data = `${resolve(dataDir)}-postgres`;
  const user = postgresUser();
  const sockets = mkdtempSync(join(tmpdir(), "depute-postgres-"));
  if (user !== undefined) chownSync(sockets, user.uid, user.gid);
  if (!existsSync(join(data, "PG_VERSION"))) {
    mkdirSync(data, { recursive: true, mode: 0o700 });
    if (user !== undefined) chownSync(data, user.uid, user.gid);
    const init = ["--pgdata", data, "--username", "depute", "--auth", "trust", "--encoding", "UTF8"];
    await promisify(execFile)(join(programs, "initdb"), [...init, "--no-locale"], {
      ...user,
      cwd: sockets,
    }).catch((cause: Error & { stderr?: string }) => {
      rmSync(sockets, { recursive: true, force: true });
      const reason = cause.stderr?.trim().split("\n").at(-1) ?? cause.message;
      throw new SettingsError(`Postgres cannot use ${data} (${reason}); set DEPUTE_POSTGRES_URL`, { cause });
    });
  }
  const options = [`max_connections=${MAX_CONNECTIONS}`, "listen_addresses="].flatMap((option) => [
    "-c",
    option,
  ]);
  const asUser = user === undefined ? [] : [`--user=${user.uid}:${user.gid}`];
  const command = [join(programs, "postgres"), "-D", data, "-k", sockets, ...options];
  return {
    url: `postgres:///postgres?host=${encodeURIComponent(sockets)}&user=depute`,
    start: () =>
      startChild(
        "postgres",
        process.execPath,
        [TIED, ...asUser, ...command],
        process.env,
        "ready to accept connections",
      ),
    removeSocket: () => rmSync(sockets, { recursive: true, force: true }),
  };
}
