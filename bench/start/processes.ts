import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { freePorts } from "depute/ports";
import { newFolder } from "./trees.ts";

/** Clock ticks per second in the times of /proc. Linux always reports 100 to programs (USER_HZ). */
const TICKS_PER_SECOND = 100;
const READY_MS = 120_000;
/** Milliseconds from readiness to the measurement of memory. */
const IDLE_MS = 15_000;

/** A program to start, and the folder in which it runs. */
export interface Program {
  readonly main: string;
  readonly folder: string;
}

export interface StartCost {
  /** Processor seconds of all threads, until the platform is ready. */
  readonly cpuSeconds: number;
  /** Resident memory of each process of Node after 15 idle seconds, in MB. */
  readonly idleMb: readonly number[];
}

/** Starts a platform in an empty data folder, measures it, and stops it. */
export async function measureStart(
  { main, folder }: Program,
  command: "start" | "cluster",
  options: { readonly withMemory: boolean },
): Promise<StartCost> {
  const dataDir = newFolder();
  const [gateway = 0, registry = 0, tasks = 0, tokens = 0, verifier = 0] = await freePorts(5);
  const ports = { gateway, ...(command === "cluster" && { registry, tasks, tokens, verifier }) };
  const flags = Object.entries(ports).flatMap(([name, port]) => [`--${name}-port`, String(port)]);
  const words = ["--max-semi-space-size=16", main, command, "--data-dir", dataDir, ...flags];
  const child = spawn(process.execPath, words, {
    cwd: folder,
    env: { ...process.env, DEPUTE_LOG_LEVEL: "error" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(child, "exit");
  try {
    await ready(`http://127.0.0.1:${gateway}/readyz`, child);
    const pids = [child.pid ?? 0, ...childrenOf(child.pid ?? 0)];
    const cpuSeconds = pids.reduce((sum, pid) => sum + cpuOf(pid), 0);
    if (!options.withMemory) return { cpuSeconds, idleMb: [] };
    await wait(IDLE_MS);
    const servers = command === "start" ? [child.pid ?? 0] : childrenOf(child.pid ?? 0).filter(isNode);
    return { cpuSeconds, idleMb: servers.map(residentMb) };
  } finally {
    child.kill("SIGTERM");
    await ended;
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function ready(url: string, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + READY_MS;
  while ((await fetch(url).catch(() => undefined))?.status !== 200) {
    if (child.exitCode !== null || Date.now() > deadline)
      throw new Error("the platform did not become ready");
    await wait(20);
  }
}

/** The fields of /proc/PID/stat after the name, which may contain spaces. */
function statOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
}

function cpuOf(pid: number): number {
  const fields = statOf(pid);
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return Number(statOf(pid)[1]) === parent;
      } catch {
        return false; // The process has just ended.
      }
    });
}

function isNode(pid: number): boolean {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("serve");
}

function residentMb(pid: number): number {
  const [, kib = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return (Number(kib) * 1024) / 1e6;
}
