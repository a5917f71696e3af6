/**
 * Runs a program, and ends it when the parent process of `tied.ts` ends: `tied.ts [--user=UID:GID] COMMAND ARGS`. Both
 * output streams of the program go to the standard output of `tied.ts`.
 */
import { spawn } from "node:child_process";
import { parentGone } from "./parent-exit.ts";

const parentEnded = parentGone();
const words = process.argv.slice(2);
const [, uid, gid] = /^--user=(\d+):(\d+)$/.exec(words[0] ?? "") ?? [];
if (uid !== undefined) words.shift();
const [command = "", ...args] = words;
const child = spawn(command, args, {
  stdio: ["ignore", "inherit", 1],
  ...(uid !== undefined && { uid: Number(uid), gid: Number(gid), cwd: "/" }),
});
const end = () => child.kill("SIGTERM");
void parentEnded.then(end);
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, end);
child.once("error", ({ message }) => {
  console.error(`depute: ${command} cannot be started: ${message}`);
  process.exitCode = 1;
});
child.once("exit", (code, signal) => {
  process.exitCode = code ?? (signal === "SIGTERM" ? 0 : 1);
});
