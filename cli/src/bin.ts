#!/usr/bin/env node
// The entry point of the command. Until this file has checked the Node.js version, it imports only files that an old
// Node.js can load.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { chooseNode } from "./node-version.ts";

/**
 * Returns the path of the Node.js that the package's optional dependency for this operating system contains; undefined
 * if the dependency is not installed.
 */
function findOther(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`);
  } catch {
    return undefined;
  }
}

/** Runs this command line with another Node.js, and ends with the exit code or signal of that process. */
function runWith(file: string): void {
  const child = spawn(file, process.argv.slice(1), { stdio: "inherit" });
  // A terminal sends its signals to this process and to the child. If this process also passed such a signal on, the
  // child would get it twice, and would stop the platform without a drain. If another process sends a signal, only this
  // process gets it, so this process passes it on.
  const isOnTerminal = process.stdin.isTTY;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => void ((isOnTerminal && signal !== "SIGTERM") || child.kill(signal)));
  }
  child.on("error", ({ message }) => {
    console.error(`depute: ${file} cannot be started: ${message}`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 1;
    if (signal === null) return;
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

const choice = chooseNode(process.versions.node, process.argv.slice(2), findOther);
if (choice.kind === "this") await import("./main.ts");
else if (choice.kind === "other") runWith(choice.file);
else {
  console.error(`depute: ${choice.message}`);
  process.exitCode = 2;
}
