import { readdirSync, readFileSync } from "node:fs";

/** Microseconds of one tick in `/proc`, at the usual 100 ticks a second. */
const TICK_US = 10_000;

/**
 * Returns the CPU time that a Postgres server and its open sessions have used so far, in microseconds. Linux only.
 *
 * @param folder a folder that occurs in the server's command line
 */
export function postgresCpu(folder: string): number {
  const processes = readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .flatMap((pid) => statOf(pid) ?? []);
  const server = processes.find(({ pid }) => commandOf(pid).includes(folder));
  if (server === undefined) throw new Error(`no Postgres server runs in ${folder}`);
  const own = processes.filter(({ pid, parent }) => pid === server.pid || parent === server.pid);
  return own.reduce((sum, { ticks }) => sum + ticks, 0) * TICK_US;
}

interface Stat {
  readonly pid: string;
  readonly parent: string;
  readonly ticks: number;
}

function statOf(pid: string): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    if (!text.includes("(postgres)")) return undefined;
    // The name of the process, in brackets, may contain spaces; the fields follow it.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { pid, parent: fields[1] ?? "", ticks: Number(fields[11]) + Number(fields[12]) };
  } catch {
    return undefined;
  }
}

function commandOf(pid: string): string {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8");
}
