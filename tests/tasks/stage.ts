import { type Json, type Replica, Replicas } from "../replicas/replica.ts";

export const TASKS = "depute.tasks.v1.TaskService";
export const WORKERS = "depute.tasks.v1.WorkerService";
const AGENTS = "depute.registry.v1.AgentService";

/** A task as its JSON has it. */
export interface TaskJson extends Json {
  readonly id: string;
  readonly status: string;
  readonly attempt?: number;
  readonly lastSequence?: string;
}

export interface LeaseJson extends Json {
  readonly taskId: string;
  readonly epoch: string;
}

/** Calls a method that has to succeed. */
export async function call(replica: Replica, method: string, request: Json): Promise<Json> {
  const answer = await replica.call(method, request);
  if (answer.code !== undefined) throw new Error(`${method}: ${JSON.stringify(answer)}`);
  return answer;
}

/** Several processes of the tasks service, and one of each service that it calls. */
export class Stage {
  readonly replicas: Replica[];
  readonly #all: Replicas;
  readonly #registry: Replica;
  readonly #settings: Record<string, string>;
  #agents = 0;

  private constructor(
    all: Replicas,
    registry: Replica,
    replicas: Replica[],
    settings: Record<string, string>,
  ) {
    this.#all = all;
    this.#registry = registry;
    this.replicas = replicas;
    this.#settings = settings;
  }

  static async open(postgresUrl: string, count: number, env: Record<string, string> = {}): Promise<Stage> {
    const all = new Replicas(postgresUrl);
    const common = all.settings(env);
    const [registry, tokens, verifier] = await Promise.all(
      ["registry", "tokens", "verifier"].map((name) => all.startOne(name, common)),
    );
    if (registry === undefined) throw new Error("no registry");
    const settings = {
      ...common,
      DEPUTE_REGISTRY_URL: registry.url,
      DEPUTE_TOKENS_URL: tokens?.url ?? "",
      DEPUTE_VERIFIER_URL: verifier?.url ?? "",
    };
    return new Stage(all, registry, await all.start("tasks", count, settings), settings);
  }

  /** Returns the replica of a number, which begins again after the last one. */
  at(number: number): Replica {
    return this.replicas[number % this.replicas.length] as Replica;
  }

  /** Kills a replica, and starts another one in its place. */
  async replace(number: number): Promise<void> {
    await this.at(number).kill();
    this.replicas[number % this.replicas.length] = await this.#all.startOne("tasks", this.#settings);
  }

  /** Registers a new agent. Returns its id. */
  async agent(): Promise<string> {
    const id = `agent-${this.#agents++}`;
    await call(this.#registry, `${AGENTS}/RegisterAgent`, { requestId: crypto.randomUUID(), agent: { id } });
    return id;
  }

  close(): void {
    this.#all.close();
  }
}

export async function create(replica: Replica, agentId: string, more: Json = {}): Promise<TaskJson> {
  const { wait, requestId = crypto.randomUUID(), ...draft } = more;
  const request = { requestId, draft: { agentId, description: "work", ...draft }, ...(wait ? { wait } : {}) };
  return (await call(replica, `${TASKS}/CreateTask`, request)).task as TaskJson;
}

/** Takes work of an agent for a worker, and begins it. */
export async function take(replica: Replica, agentId: string, worker: string, more: Json = {}) {
  const request = { agentId, worker, begin: true, wait: "10s", ...more };
  const { assignments = [] } = await call(replica, `${WORKERS}/TakeAssignments`, request);
  return (assignments as { lease: LeaseJson; task: TaskJson }[]).map(({ lease, task }) => ({ lease, task }));
}

export function complete(replica: Replica, lease: LeaseJson): Promise<Json> {
  return replica.call(`${WORKERS}/CompleteAssignment`, { lease, output: { full: { done: lease.taskId } } });
}

export async function taskOf(replica: Replica, taskId: string): Promise<TaskJson> {
  return (await call(replica, `${TASKS}/GetTask`, { taskId })).task as TaskJson;
}

/** Returns the first events of a task's log, as `sequence name`. */
export async function logOf(replica: Replica, taskId: string, count: number): Promise<string[]> {
  const messages = await replica.stream(`${TASKS}/WatchTask`, { taskId, afterSequence: "0" }, count);
  return messages.flatMap(({ taskEvent }) => {
    if (taskEvent === undefined) return [];
    const { sequence, taskId: _, eventTime: __, status: ___, ...payload } = taskEvent as Json;
    return `${sequence} ${Object.keys(payload).find((name) => NAMES.has(name)) ?? JSON.stringify(payload)}`;
  });
}

const NAMES = new Set(["created", "accepted", "started", "completed", "cancelled", "expired", "requeued"]);
