import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";

/** Milliseconds of one clock tick of /proc. Linux counts a hundred ticks a second. */
const TICK_MS = 10;

interface ProcessTimes {
  readonly parent: number;
  /** CPU time of the process itself, in milliseconds; `endedMs` is that of its ended children. */
  readonly ownMs: number;
  readonly endedMs: number;
}

/** Returns the CPU time of a process, user and system, in milliseconds. Linux only. */
export function cpuOf(pid: number | undefined): number {
  return timesOf(pid ?? 0)?.ownMs ?? 0;
}

/** Returns the CPU time of a Postgres server with all its sessions, ended ones included, in milliseconds. */
export function cpuOfPostgres(dataDirectory: string): number {
  const postmaster = Number(readFileSync(join(dataDirectory, "postmaster.pid"), "utf8").split("\n")[0]);
  let sumMs = 0;
  for (const name of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    const times = timesOf(Number(name));
    if (times === undefined) continue;
    if (Number(name) === postmaster) sumMs += times.ownMs + times.endedMs;
    else if (times.parent === postmaster) sumMs += times.ownMs;
  }
  return sumMs;
}

/** Returns the data folder of a Postgres server. */
export async function dataDirectoryOf(url: string): Promise<string> {
  const client = new Client(url);
  await client.connect();
  try {
    const { rows } = await client.query("SHOW data_directory");
    return String(rows[0]?.data_directory);
  } finally {
    await client.end();
  }
}

function timesOf(pid: number): ProcessTimes | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name of the program, in parentheses, may contain spaces.
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const at = (index: number) => fields[index] ?? 0;
    return { parent: at(1), ownMs: (at(11) + at(12)) * TICK_MS, endedMs: (at(13) + at(14)) * TICK_MS };
  } catch {
    return undefined;
  }
}
