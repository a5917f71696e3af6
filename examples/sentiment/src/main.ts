/**
 * `npm run demo`: runs the job on the platform at DEPUTE_URL or at the default address. If DEPUTE_URL is not set and no
 * platform answers, starts one.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { terminal } from "./draw.ts";
import { runMainJob } from "./main-job.ts";
import { startPlatformProcess, startWorkerProcess } from "./processes.ts";

const DEFAULT_URL = "http://127.0.0.1:8080";
/** Milliseconds to pause after each batch of the slow run, so that a person can watch the work or kill a process. */
const SLOW_PAUSE_MS = 1_000;

const screen = terminal(process.stdout);
const wantedUrl = process.env.DEPUTE_URL ?? DEFAULT_URL;
const cleanUp: (() => Promise<void>)[] = [];

async function platform(): Promise<string> {
  if (await answers(wantedUrl)) return wantedUrl;
  if (process.env.DEPUTE_URL !== undefined) throw new Error(`nothing answers at ${wantedUrl}`);
  screen.say(`Nothing runs at ${wantedUrl}; starting a platform for this run.`);
  const folder = await mkdtemp(join(tmpdir(), "depute-demo-"));
  cleanUp.push(() => rm(folder, { recursive: true, force: true }));
  const flags = ["--data-dir", folder, "--gateway-port", "0", "--log-level", "warn"];
  const started = await startPlatformProcess(["start", ...flags]);
  cleanUp.push(() => started.stop());
  return started.about;
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(1_000) })).ok;
  } catch {
    return false;
  }
}

try {
  const url = await platform();
  const worker = await startWorkerProcess(url, process.argv.includes("--slow") ? SLOW_PAUSE_MS : 0);
  cleanUp.push(() => worker.stop());
  screen.say(`Platform at ${url}; worker ${worker.about.agentId} is process ${worker.pid}, over gRPC.\n`);
  const { verified, attested, refusal } = await runMainJob(url, worker.about, screen);
  const good = verified && attested && refusal.includes("revoked");
  screen.say(
    good ? "\nDone: delegated, watched, checked, signed, and taken back." : "\nSomething did not hold.",
  );
  if (!good) process.exitCode = 1;
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  for (const undo of cleanUp.reverse()) await undo();
}
