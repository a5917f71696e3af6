import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type User, userOf } from "./depute.ts";

// The limit is high, because each test runs several commands and each command is a process.
vi.setConfig({ testTimeout: 120_000 });

let platform: TestPlatform;
let user: User;
beforeAll(async () => {
  platform = await startPlatform();
  user = userOf(platform.url);
});
afterAll(async () => {
  user.remove();
  await platform.stop();
});

/** Runs a worker of an agent on a Python program, while `use` runs. */
async function withWorker(agent: string, program: string, use: () => Promise<void>): Promise<void> {
  const file = join(user.folder, `${agent}.py`);
  writeFileSync(file, program);
  const words = ["worker", "--agent", agent, "--capability", agent, "--grace", "30s", "--", "python3", file];
  const child = user.start(words);
  const ended = once(child, "exit");
  for await (const chunk of child.stderr ?? []) if (String(chunk).includes("takes assignments")) break;
  try {
    await use();
  } finally {
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  }
}

const delegate = (agent: string, input: unknown, ...more: string[]) =>
  user.run(["delegate", "--agent", agent, "--input", JSON.stringify(input), ...more]);

test("a program gets JSON, reports progress, and returns JSON", async () => {
  const program = `import json, os, sys
task = json.load(sys.stdin)
os.write(3, b'1/2 half\\n{"processed":2,"total":2,"message":"done"}\\nno progress\\n')
print(json.dumps({"sum": sum(task["numbers"]), "id": os.environ["DEPUTE_TASK_ID"]}))
`;
  await withWorker("adder", program, async () => {
    const { out, err } = await delegate("adder", { numbers: [1, 2, 39] }, "--watch");
    const { sum, id } = JSON.parse(out);
    expect(sum, err).toBe(42);
    const events: string[] = [];
    for await (const { taskEvent } of platform.clients.tasks.watchTask({ taskId: id, afterSequence: 0n })) {
      const payload = taskEvent?.payload;
      if (payload?.case === "progress") events.push(payload.value.message);
    }
    expect(events).toEqual(["half", "done"]);
  });
});

test.each([
  ["65", "import sys; sys.exit(65)", "PROGRAM_FAILED", "exit code 65"],
  ["no JSON", "print('not JSON')", "OUTPUT_NOT_JSON", "standard output is not JSON"],
])("a program that ends with %s fails the task without a retry", async (name, program, reason, message) => {
  const agent = `failing-${name.replace(" ", "-")}`;
  await withWorker(agent, program, async () => {
    const { code, err } = await delegate(agent, null, "--watch");
    expect(code, err).toBe(7);
    expect(err).toContain(reason);
    expect(err).toContain(message);
  });
});

test("a cancelled task sends SIGTERM to its program", async () => {
  const program = `import signal, sys, os
def stop(*_):
    open(${JSON.stringify(join(user.folder, "stopped"))}, "w").close()
    sys.exit(1)
signal.signal(signal.SIGTERM, stop)
os.write(3, b"0/1 started\\n")
while True: signal.pause()
`;
  await withWorker("sleeper", program, async () => {
    const { out } = await delegate("sleeper", null, "-o", "id");
    const taskId = out.trim();
    for await (const { taskEvent } of platform.clients.tasks.watchTask({ taskId, afterSequence: 0n })) {
      if (taskEvent?.payload.case === "progress") break;
    }
    expect((await user.run(["tasks", "cancel", taskId])).code).toBe(0);
    await vi.waitFor(() => expect(existsSync(join(user.folder, "stopped"))).toBe(true), { timeout: 60_000 });
  });
});
