import { connect } from "@depute/client";
import { hasPostgres, ownPostgresForTests } from "@depute/store/testing";
import { afterEach, expect, test } from "vitest";
import { type Json, JsonClient } from "./harness/json-client.ts";
import { ScalablePlatform } from "./harness/scalable-platform.ts";
import { CleanUp, dataFolder } from "./platform.ts";

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run(), 120_000);

const TASKS = "depute.tasks.v1.TaskService";
const WORKERS = "depute.tasks.v1.WorkerService";
const AGENTS = "depute.registry.v1.AgentService";
/** Milliseconds of load before each change of the replicas, and after the last one. */
const LOAD_MS = 4_000;
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

interface TaskJson {
  readonly id: string;
  readonly status: string;
  readonly attempt: number;
}

test.runIf(hasPostgres() || process.env.CI === "true")(
  "two replicas, three, two again under load: a call fails at most as unavailable, and nothing acknowledged is lost",
  { timeout: 900_000 },
  async () => {
    const postgres = await ownPostgresForTests();
    cleanUp.add(async () => postgres?.stop());
    const platform = await ScalablePlatform.open({
      ...{ most: 3, folder: await dataFolder(cleanUp) },
      env: { DEPUTE_POSTGRES_URL: postgres?.url ?? "", DEPUTE_REDIS_URL: "" },
    });
    cleanUp.add(() => platform.close());
    await platform.start(1);
    await platform.start(2);
    const load = await Load.start(platform.url);
    cleanUp.add(() => load.stop());

    await load.during(pause(LOAD_MS));
    await load.during(platform.start(3));
    await load.during(pause(LOAD_MS));
    const served = await tasksServed(platform, 3);
    const codes = await load.during(platform.end(3));
    await load.during(pause(LOAD_MS));
    const { client, agentIds, taskIds } = load;
    // biome-ignore lint/suspicious/noConsole: the figures of the run
    console.log(`${client.calls} calls; refused and repeated: ${JSON.stringify([...client.refusals])}`);
    const { sequences, reports, output } = await load.finish();

    expect(served).toBeGreaterThan(0);
    expect(codes).toEqual(["0", "0", "0", "0", "0"]);
    // The stream of the long task had every event once, over all its connections.
    expect(sequences).toEqual(sequences.map((_, i) => (sequences[0] ?? 0n) + BigInt(i)));
    expect(output).toEqual({ reports });
    expect(
      [...client.refusals.keys()].filter((code) => !["unavailable", "connection"].includes(code)),
    ).toEqual([]);
    expect(taskIds.length).toBeGreaterThan(50);
    for (const replica of [1, 2]) {
      const reader = new JsonClient(platform.urlOf("gateway", replica));
      for (const agentId of agentIds) await reader.call(`${AGENTS}/GetAgent`, { agentId });
      for (const taskId of taskIds) {
        const { task } = (await reader.call(`${TASKS}/GetTask`, { taskId })) as unknown as { task: TaskJson };
        expect(task).toMatchObject({ status: "TASK_STATUS_COMPLETED", attempt: 1 });
      }
    }
  },
);

/** Returns how many calls of CreateTask the tasks process of a replica has served. */
async function tasksServed(platform: ScalablePlatform, replica: number): Promise<number> {
  const metrics = await (await fetch(`${platform.urlOf("tasks", replica)}/metrics`)).text();
  const lines = metrics.split("\n").filter((line) => line.includes("CreateTask") && line.includes("_count"));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** Clients that create, do and watch work until `finish`. Short tasks have a foreign client, the long one has the SDK. */
class Load {
  readonly client: JsonClient;
  readonly agentIds: string[] = [];
  readonly taskIds: string[] = [];
  readonly #isOver = new AbortController();
  readonly #failed = Promise.withResolvers<never>();
  readonly #lanes: Promise<void>[] = [];
  #finishLong: () => Promise<{ sequences: bigint[]; reports: number; output: unknown }> = () =>
    Promise.reject(new Error("not started"));

  private constructor(url: string) {
    this.client = new JsonClient(url);
    this.#failed.promise.catch(() => {});
  }

  static async start(url: string): Promise<Load> {
    const load = new Load(url);
    await load.#startLong(url);
    await load.client.call(`${AGENTS}/RegisterAgent`, {
      requestId: crypto.randomUUID(),
      agent: { id: "short" },
    });
    for (let n = 0; n < 2; n++) {
      load.#lane(() => load.#create());
      load.#lane(() => load.#work(`worker-${n}`));
    }
    load.#lane(() => load.#register());
    return load;
  }

  /** Waits for a promise, or rejects with the error of the first call of the load that failed for good. */
  during<T>(event: Promise<T>): Promise<T> {
    return Promise.race([event, this.#failed.promise]);
  }

  async stop(): Promise<void> {
    this.#isOver.abort();
    await Promise.allSettled(this.#lanes);
  }

  /**
   * Stops the creation of tasks, waits until every acknowledged short task is completed, and ends the load. Returns
   * the long task's events and output.
   */
  async finish() {
    const isDone = async (taskId: string) => {
      const { task } = (await this.client.call(`${TASKS}/GetTask`, { taskId })) as unknown as {
        task: TaskJson;
      };
      return task.status === "TASK_STATUS_COMPLETED";
    };
    this.#isCreating = false;
    for (const taskId of this.taskIds) while (!(await this.during(isDone(taskId)))) await pause(100);
    await this.stop();
    return this.#finishLong();
  }

  #isCreating = true;

  #lane(once: () => Promise<void>): void {
    const run = async () => {
      while (!this.#isOver.signal.aborted) await once();
    };
    this.#lanes.push(run().catch((error: unknown) => this.#failed.reject(error)));
  }

  async #create(): Promise<void> {
    await pause(60);
    if (!this.#isCreating) return;
    const draft = { agentId: "short", description: "short", limits: { heartbeat: "60s" } };
    const request = { requestId: crypto.randomUUID(), draft };
    const { task } = (await this.client.call(`${TASKS}/CreateTask`, request)) as unknown as {
      task: TaskJson;
    };
    this.taskIds.push(task.id);
  }

  async #work(worker: string): Promise<void> {
    const request = { agentId: "short", worker, capacity: 4, begin: true, wait: "1s" };
    const { assignments = [] } = await this.client.call(`${WORKERS}/TakeAssignments`, request);
    for (const { lease } of assignments as { lease: Json }[])
      await this.client.call(`${WORKERS}/CompleteAssignment`, { lease, output: { full: { by: worker } } });
  }

  async #register(): Promise<void> {
    await pause(200);
    const id = `agent-${this.agentIds.length}`;
    await this.client.call(`${AGENTS}/RegisterAgent`, { requestId: crypto.randomUUID(), agent: { id } });
    this.agentIds.push(id);
  }

  /**
   * Starts a worker with a task that lasts as long as the load. The task has a single attempt, so that a lost lease
   * would fail it.
   */
  async #startLong(url: string): Promise<void> {
    const depute = connect(url);
    await depute.register({ id: "long", description: "Works long.", capabilities: [{ id: "work" }] });
    const { signal } = this.#isOver;
    let reports = 0;
    const worker = depute.work({
      agentId: "long",
      async work(_input, { progress }) {
        for (; !signal.aborted; await pause(200)) await progress(reports++, 0);
        return { output: { reports } };
      },
      onError: () => {},
    });
    const limits = { heartbeat: { seconds: 20n } };
    const once = { timeoutMs: 600_000, limits, retry: { maxAttempts: 1 } };
    const task = await depute.delegate({ agentId: "long", input: {}, ...once });
    const sequences: bigint[] = [];
    const watching = (async () => {
      for await (const { sequence } of task.events()) sequences.push(BigInt(sequence));
    })();
    watching.catch((error: unknown) => this.#failed.reject(error));
    cleanUp.add(async () => {
      await worker.stop();
      depute.close();
    });
    this.#finishLong = async () => {
      const { output } = await task.result();
      await watching;
      return { sequences, reports, output };
    };
  }
}
