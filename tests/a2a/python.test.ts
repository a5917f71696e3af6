import { execFile, execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BINDINGS, Scene } from "./scene.ts";

const CLIENT = join(import.meta.dirname, "python/client.py");
const PACKAGES = ["a2a-sdk[grpc]==1.3.0"];
const INSTALL_MS = 300_000;

const hasPython = spawnSync("python3", ["-c", "import sys, venv, ensurepip"]).status === 0;
if (!hasPython) {
  if (process.env.CI === "true") throw new Error("python3 with venv is needed: A2A has a client in Python");
  // biome-ignore lint/suspicious/noConsole: a skipped test has to be seen by the person who runs it
  console.warn("*** SKIPPED: python3 has no venv, so that the official Python client of A2A is not run ***");
}

describe.runIf(hasPython)("the official client in Python", () => {
  const scene = new Scene();
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "depute-a2a-python-"));
    execFileSync("python3", ["-m", "venv", folder]);
    const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...PACKAGES];
    execFileSync(join(folder, "bin/python"), install, { stdio: "inherit" });
  }, INSTALL_MS);
  afterAll(() => {
    if (folder !== "") rmSync(folder, { recursive: true });
  });

  test.each(BINDINGS)(
    "sends, answers, streams, cancels and reads over %s",
    async (binding) => {
      const argv = [CLIENT, scene.platform.url, "/a2a/worker/.well-known/agent-card.json", binding];
      const { stdout } = await promisify(execFile)(join(folder, "bin/python"), argv, { timeout: 60_000 });
      const lines = stdout.trim().split("\n");
      expect(lines.map((line) => JSON.parse(line))).toEqual([
        { operation: "card", name: "worker", bindings: BINDINGS.toSorted() },
        { operation: "send", state: "TASK_STATE_COMPLETED", text: "hello" },
        { operation: "question", state: "TASK_STATE_INPUT_REQUIRED" },
        { operation: "answer", same: true, text: "red" },
        { operation: "stream", first: "task", last: "status_update" },
        {
          operation: "cancel",
          first: "task",
          state: "TASK_STATE_CANCELED",
          end: "TASK_STATE_CANCELED",
        },
        { operation: "read", same: true, listed: [true] },
        { operation: "unknown", error: "TaskNotFoundError" },
      ]);
    },
    120_000,
  );
});
