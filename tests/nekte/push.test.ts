import { WorkFailure, WorkSuspension } from "@depute/client";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";

/** Work that waits until a test lets it go on, by its description. */
const held = new Map<string, () => void>();

let near: TestPlatform;
let far: TestPlatform;

beforeAll(async () => {
  far = await startPlatform();
  near = await startPlatform(["--tasks-outbound-hosts", "127.0.0.1"]);
  await introduce(far, "worker", [["sentiment"], ["fails"]]);
  far.work("worker", async (input, { task, progress, partial, signal, saved, contexts }) => {
    if (task.capabilityId === "fails") throw new WorkFailure("NO_LEXICON", "there is no lexicon", false);
    if (task.capabilityId !== "") return { output: { got: input } };
    if (task.description === "suspend" && saved === undefined) throw new WorkSuspension("later", { done: 1 });
    await progress(1, 2, "half");
    await partial({ so: "far" });
    if (task.description.startsWith("wait")) {
      await new Promise<void>((resolve) => {
        held.set(task.description, resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      signal.throwIfAborted();
    }
    const data = contexts.map(({ envelope }) => JSON.parse(new TextDecoder().decode(envelope?.data)));
    return { output: { input, data, saved: saved ?? null }, compact: { short: true }, minimal: "done" };
  });
});
afterAll(async () => {
  await near.stop();
  await far.stop();
});

/** An agent of the near platform that answers at an agent of the far one. */
async function agentAt(id: string, endpoint: string) {
  await near.clients.agents.registerAgent({
    requestId: crypto.randomUUID(),
    agent: { id, nekte: { endpoint } },
  });
}

async function eventsOf(draft: object): Promise<TaskEvent[]> {
  const events: TaskEvent[] = [];
  const requestId = crypto.randomUUID();
  for await (const { event } of near.clients.tasks.delegateTask({ requestId, draft })) {
    if (event !== undefined) events.push(event);
  }
  return events;
}

const kinds = (events: readonly TaskEvent[]) => events.map(({ payload }) => payload.case);

describe.each([
  ["http", () => `${far.url}/nekte/worker`],
  ["grpc", () => `grpc://${new URL(far.url).host}/worker`],
])("an agent of another Depute, over %s", (protocol, address) => {
  const agentId = `remote-${protocol}`;
  beforeAll(() => agentAt(agentId, address()));

  test("does free work, and what it tells is relayed", async () => {
    const input = value({ reviews: 3 });
    const budget = { maxTokens: 1000, detailLevel: "full" };
    const events = await eventsOf({ agentId, description: "x", input, budget });
    expect(kinds(events)).toEqual(["created", "accepted", "started", "progress", "partial", "completed"]);
    const last = events.at(-1)?.payload;
    expect(last?.case === "completed" && last.value.output).toMatchObject({
      minimal: "done",
      compact: value({ short: true }),
      full: value({ input: { reviews: 3 }, data: [], saved: null }),
    });
  });
});
