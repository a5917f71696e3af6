/** Runs another program that ends with the process that started this one: `tied.ts COMMAND ARGS`. */
import { spawn } from "node:child_process";
import { parentGone } from "./parent-exit.ts";

const parentEnded = parentGone();
const [command = "", ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"] });
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
