import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findPostgresPrograms, postgresUser } from "../postgres/local-programs.ts";

export interface TestPostgres {
  /** The URL of a database on the server. Each test opens an unused schema of this database; see `freeSchema`. */
  readonly url: string;
  stop(): Promise<void>;
}

/** A Postgres server for a single test, which may restart the server. */
export interface OwnPostgres extends TestPostgres {
  /** The path of the server's socket. */
  readonly path: string;
  /** Runs `pg_ctl restart`. The mode `fast` ends the connections in an orderly way; `immediate` acts like a crash. */
  restart(mode: "fast" | "immediate"): Promise<void>;
}

/**
 * Returns a Postgres for tests: the server at DEPUTE_POSTGRES_URL or, if the variable is not set, a new server of the
 * installed `postgres` on a separate socket. If neither exists, the function warns that tests are skipped, and returns
 * undefined.
 *
 * @throws Error if neither exists and CI=true
 */
export async function postgresForTests(): Promise<TestPostgres | undefined> {
  const url = process.env.DEPUTE_POSTGRES_URL;
  if (url) return { url, stop: async () => {} };
  const programs = findPostgresPrograms();
  if (programs !== undefined) return startPostgres(programs);
  const lack = "There is no Postgres on this machine and no DEPUTE_POSTGRES_URL";
  if (process.env.CI === "true")
    throw new Error(`${lack}: with CI=true its tests may not be skipped; install it or set the variable.`);
  // biome-ignore lint/suspicious/noConsole: a skipped test has to be seen by the person who runs it
  console.warn(`\n*** ${lack}: THE POSTGRES TESTS ARE SKIPPED. ***\n`);
  return undefined;
}

/**
 * Starts a Postgres for one test, independent of DEPUTE_POSTGRES_URL. If Postgres' programs are missing, the
 * function warns that tests are skipped, and returns undefined.
 *
 * @param fsync whether a commit waits for the disk; a measurement needs it, a test does not
 * @throws Error if these programs are missing and CI=true
 */
export async function ownPostgresForTests(fsync: "on" | "off" = "off"): Promise<OwnPostgres | undefined> {
  const programs = findPostgresPrograms();
  if (programs !== undefined) return startPostgres(programs, fsync);
  const lack = "The programs of Postgres are not on this machine";
  if (process.env.CI === "true")
    throw new Error(`${lack}: with CI=true their tests may not be skipped; install them.`);
  // biome-ignore lint/suspicious/noConsole: a skipped test has to be seen by the person who runs it
  console.warn(`\n*** ${lack}: THE TESTS THAT RESTART IT ARE SKIPPED. ***\n`);
  return undefined;
}

/** Whether `postgresForTests` can return a server. */
export function hasPostgres(): boolean {
  return Boolean(process.env.DEPUTE_POSTGRES_URL) || findPostgresPrograms() !== undefined;
}

/** Returns an unused schema name. */
export function freeSchema(): string {
  return `test_${randomUUID().replaceAll("-", "")}`;
}

async function startPostgres(programs: string, fsync: "on" | "off" = "off"): Promise<OwnPostgres> {
  const folder = mkdtempSync(join(tmpdir(), "depute-postgres-"));
  const user = postgresUser();
  if (user !== undefined) chownSync(folder, user.uid, user.gid);
  const data = join(folder, "data");
  const init = [
    "--pgdata",
    data,
    "--username",
    "depute",
    "--auth",
    "trust",
    "--no-sync",
    "--encoding",
    "UTF8",
  ];
  execFileSync(join(programs, "initdb"), init, { ...user, cwd: folder, stdio: "ignore" });
  const server = spawn(
    join(programs, "postgres"),
    [
      "-D",
      data,
      "-k",
      folder,
      "-c",
      "listen_addresses=",
      "-c",
      "max_connections=200",
      "-c",
      `fsync=${fsync}`,
    ],
    { ...user, cwd: folder, stdio: ["ignore", "ignore", "pipe"] },
  );
  // The file is read at each call, because each restart starts another process.
  const pidOf = () => Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0]);
  const kill = () => {
    try {
      process.kill(pidOf(), "SIGKILL");
    } catch {
      // An error means that the process has ended.
    }
  };
  const control = (...args: string[]) =>
    new Promise<void>((resolve, reject) => {
      const options = { ...user, cwd: folder, stdio: "ignore" as const };
      const child = spawn(join(programs, "pg_ctl"), [...args, "-w", "-D", data], options);
      child.on("error", reject);
      child.on("exit", (code) =>
        code === 0 ? resolve() : reject(new Error(`pg_ctl ${args[0]} ended with ${code}`)),
      );
    });
  process.once("exit", kill);
  const stop = async () => {
    process.off("exit", kill);
    if (existsSync(join(data, "postmaster.pid"))) await control("stop", "-m", "fast");
    rmSync(folder, { recursive: true, force: true });
  };
  if (!(await isReady(server))) {
    await stop();
    throw new Error("postgres does not start");
  }
  return {
    url: `postgres:///postgres?host=${encodeURIComponent(folder)}&user=depute`,
    path: join(folder, ".s.PGSQL.5432"),
    restart: (mode) => control("restart", "-m", mode, "-l", join(folder, "log")),
    stop,
  };
}

async function isReady(server: ChildProcess): Promise<boolean> {
  let log = "";
  for await (const chunk of server.stderr ?? []) {
    log += String(chunk);
    if (log.includes("ready to accept connections")) break;
  }
  // Reads and discards the server's log, because a full pipe would block the server.
  server.stderr?.resume();
  return log.includes("ready to accept connections");
}
