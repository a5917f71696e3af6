import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** The folder in which some Linux distributions install several versions of Postgres side by side. */
const VERSIONED = "/usr/lib/postgresql";

/** The id of `nobody` on Linux. */
const NOBODY = 65_534;

/** A user and a group of the system, for the options of a child process. */
export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Returns the folder of this machine's `initdb` and `postgres`; empty when they are on the PATH; undefined when they are
 * missing.
 */
export function findPostgresPrograms(): string | undefined {
  if (["initdb", "postgres"].every((name) => spawnSync(name, ["--version"]).status === 0)) return "";
  if (!existsSync(VERSIONED)) return undefined;
  const newest = readdirSync(VERSIONED).sort((a, b) => Number(b) - Number(a))[0];
  const folder = join(VERSIONED, newest ?? "", "bin");
  return existsSync(join(folder, "initdb")) ? folder : undefined;
}

/**
 * Returns the user under which root starts Postgres, because Postgres refuses to run as root: `postgres` if it exists,
 * else `nobody`. Undefined if this process does not run as root.
 */
export function postgresUser(): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => spawnSync("id", [flag, "postgres"], { encoding: "utf8" });
  const [uid, gid] = [id("-u"), id("-g")];
  const exists = uid.status === 0 && gid.status === 0;
  return exists ? { uid: Number(uid.stdout), gid: Number(gid.stdout) } : { uid: NOBODY, gid: NOBODY };
}
