import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { afterAll, beforeAll } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";

/** Flags of a platform that may call endpoints on this machine, with at most 2 concurrent tasks per agent. */
export const FLAGS = ["--tasks-outbound-hosts", "127.0.0.1", "--tasks-push-per-agent", "2"];

let agentCount = 0;

/** Registers an agent whose record names an endpoint address. */
export async function register(
  endpoint: string,
  { clients }: Pick<TestPlatform, "clients">,
): Promise<string> {
  const id = `agent-${++agentCount}`;
  await clients.agents.registerAgent({
    requestId: crypto.randomUUID(),
    agent: { id, nekte: { endpoint } },
  });
  return id;
}

export const kinds = (events: readonly TaskEvent[]) => events.map(({ payload }) => payload.case);
export const lastOf = (events: readonly TaskEvent[]) => events.at(-1)?.payload;

export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Starts a platform that calls agents at their endpoints, for the tests of one file. */
export class EndpointScene {
  #platform: TestPlatform | undefined;

  /** @param flags more flags than FLAGS; the function runs when the tests begin */
  constructor(flags: () => readonly string[] = () => []) {
    beforeAll(async () => {
      this.#platform = await startPlatform([...FLAGS, ...flags()]);
    });
    afterAll(() => this.#platform?.stop());
  }

  get platform(): TestPlatform {
    if (this.#platform === undefined) throw new Error("the platform is not up yet");
    return this.#platform;
  }

  register = (endpoint: string) => register(endpoint, this.platform);

  /** Creates a task and returns all its events until the task ends. */
  eventsOf = async (draft: object): Promise<TaskEvent[]> => {
    const events: TaskEvent[] = [];
    const requestId = crypto.randomUUID();
    for await (const { taskEvent: event } of this.platform.clients.tasks.delegateTask({ requestId, draft })) {
      if (event !== undefined) events.push(event);
    }
    return events;
  };
}
