import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Dashboard } from "./dashboard.ts";
import type { LoadSample } from "./flow.ts";
import type { Minute } from "./minute.ts";
import { pictureOf } from "./picture.ts";
import type { ServerSample } from "./server.ts";

/**
 * Loads a platform for an hour, or `--minutes`, and notes its memory, descriptors, store and latencies each minute:
 * `npm run hour -- [--minutes M] [--out FOLDER] [--dashboard]`. Writes `hour.json` and `hour.svg` after each minute. With
 * `--dashboard`, a Prometheus scrapes the platform, tokens are used too, and each row of the Grafana dashboard is written
 * as `dashboard-ROW.svg` at the end.
 */

const MINUTE_MS = 60_000;
const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    out: { type: "string", default: tmpdir() },
    dashboard: { type: "boolean", default: false },
  },
});
const minutes = Number(values.minutes);
if (!Number.isInteger(minutes) || minutes < 1) throw new Error("--minutes takes a whole number above 0");

const dataDir = mkdtempSync(join(tmpdir(), "depute-hour-"));
const server = start("server.ts", [dataDir], ["--max-semi-space-size=16", "--heapsnapshot-signal=SIGUSR2"]);
const { address } = await firstMessage<{ address: string }>(server);
const load = start("load.ts", [address, ...(values.dashboard ? ["tokens"] : [])]);
const dashboard = values.dashboard ? await Dashboard.start(address) : undefined;
try {
  await firstMessage(load);
  const run: Minute[] = [];
  const startMs = performance.now();
  for (let minute = 1; minute <= minutes; minute++) {
    await wait(startMs + minute * MINUTE_MS - performance.now());
    const [ofServer, ofLoad] = await Promise.all([ask<ServerSample>(server), ask<LoadSample>(load)]);
    run.push({ minute, ...ofServer, ...ofLoad });
    console.log(JSON.stringify(run.at(-1)));
    write(run);
  }
  for (const [title, svg] of (await dashboard?.draw()) ?? [])
    writeFileSync(join(values.out, `dashboard-${title.toLowerCase().replaceAll(" ", "-")}.svg`), svg);
} finally {
  await dashboard?.stop();
  for (const child of [load, server]) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.disconnect();
    await once(child, "exit");
  }
  rmSync(dataDir, { recursive: true, force: true });
}
process.exit();

function start(file: string, args: readonly string[], execArgv: readonly string[] = []): ChildProcess {
  const child = fork(join(import.meta.dirname, file), args, { execArgv: [...execArgv] });
  child.once("exit", (code) => {
    if (child.connected || code !== 0) console.error(`${file} ended with ${code}`);
  });
  return child;
}

function ask<Answer>(child: ChildProcess): Promise<Answer> {
  child.send("sample");
  return firstMessage(child);
}

async function firstMessage<Message>(child: ChildProcess): Promise<Message> {
  const [message] = await Promise.race([
    once(child, "message"),
    once(child, "exit").then(() => Promise.reject(new Error("a process of the run ended"))),
  ]);
  return message as Message;
}

function write(run: readonly Minute[]): void {
  mkdirSync(values.out, { recursive: true });
  writeFileSync(join(values.out, "hour.json"), `${JSON.stringify(run, null, 2)}\n`);
  writeFileSync(join(values.out, "hour.svg"), pictureOf(run));
}
