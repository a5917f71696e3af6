import { createLogger } from "@depute/service";
import { afterEach, expect, test } from "vitest";
import { type Child, startChild } from "../processes.ts";
import { Supervisor } from "./supervisor.ts";

const PROGRAM =
  'console.log("ready"); process.on("SIGTERM", () => process.exit(0)); setInterval(() => {}, 1000)';
const log = createLogger({ level: "silent", name: "test" });
const supervisors: Supervisor[] = [];
afterEach(async () => {
  for (const supervisor of supervisors.splice(0)) await supervisor.stop();
});

function supervise(start: () => Promise<Child>): Supervisor {
  const supervisor = new Supervisor({ name: "program", start, log, graceMs: 5_000 });
  supervisors.push(supervisor);
  return supervisor;
}

const startProgram = (program = PROGRAM) =>
  startChild("program", process.execPath, ["--eval", program], process.env, "ready");

test("a killed process starts again", async () => {
  const supervisor = supervise(() => startProgram());
  await supervisor.start();
  const first = supervisor.pid as number;
  process.kill(first, "SIGKILL");
  await expect.poll(() => supervisor.restarts, { timeout: 10_000 }).toBe(1);
  expect(supervisor.pid).not.toBe(first);
}, 20_000);

test("a process that does not start is retried until it does", async () => {
  let starts = 0;
  const supervisor = supervise(() => startProgram(++starts === 2 ? "process.exit(3)" : PROGRAM));
  await supervisor.start();
  process.kill(supervisor.pid as number, "SIGKILL");
  await expect.poll(() => supervisor.restarts, { timeout: 15_000 }).toBe(1);
  expect(starts).toBe(3);
}, 30_000);

test("the first start that fails is an error with the last lines of the process", async () => {
  const supervisor = supervise(() => startProgram('console.log("no port"); process.exitCode = 3'));
  await expect(supervisor.start()).rejects.toThrow("program ended (3) before it was ready: no port");
}, 20_000);

test("a replaced process stops in order and starts at once", async () => {
  const supervisor = supervise(() => startProgram());
  await supervisor.start();
  const first = supervisor.pid;
  await supervisor.replace();
  expect([supervisor.restarts, supervisor.pid === first]).toEqual([1, false]);
}, 20_000);

test("a stopped process does not start again", async () => {
  let starts = 0;
  const supervisor = supervise(() => {
    starts++;
    return startProgram();
  });
  await supervisor.start();
  await supervisor.stop();
  expect([starts, supervisor.pid]).toEqual([1, undefined]);
}, 20_000);
