import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { flows } from "./flows.ts";

/**
 * Lists the source files that each main flow passes, on a platform in one process: `npm run flows [-- --list]
 * [NAME...]`. A file counts if one of its functions runs between the first request and the last response in each of
 * three runs. Therefore background timers do not count. Three warm-up runs come first.
 */

const WARM_UPS = 3;
const RUNS = 3;

const { values, positionals } = parseArgs({ options: { list: { type: "boolean" } }, allowPositionals: true });
const dataDir = mkdtempSync(join(tmpdir(), "depute-flows-"));
const child = fork(join(import.meta.dirname, "server.ts"), [dataDir]);
try {
  const urls = await firstMessage<Record<string, string>>(child);
  for (const { name, run } of await flows(urls)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    for (let i = 0; i < WARM_UPS; i++) await run();
    let files: string[] | undefined;
    for (let i = 0; i < RUNS; i++) {
      await filesRun();
      await run();
      const ran = await filesRun();
      files = files?.filter((file) => ran.includes(file)) ?? ran;
    }
    report(name, files ?? []);
  }
} finally {
  child.disconnect();
  await once(child, "exit");
  rmSync(dataDir, { recursive: true, force: true });
}
process.exit();

function filesRun(): Promise<string[]> {
  child.send("files");
  return firstMessage(child);
}

function report(name: string, files: readonly string[]): void {
  const rooms = new Map<string, number>();
  for (const file of files) {
    const room = file
      .split("/")
      .slice(0, file.startsWith("gateway") ? 1 : 2)
      .join("/");
    rooms.set(room, (rooms.get(room) ?? 0) + 1);
  }
  const parts = [...rooms].sort(([, a], [, b]) => b - a).map(([room, count]) => `${room} ${count}`);
  console.log(`${name.padEnd(16)} ${String(files.length).padStart(4)} files: ${parts.join(", ")}`);
  if (values.list === true) for (const file of [...files].sort()) console.log(`  ${file}`);
}

async function firstMessage<T>(process: ChildProcess): Promise<T> {
  const [message] = await once(process, "message");
  return message as T;
}
