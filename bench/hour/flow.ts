import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type {
  CreateTaskResponse,
  WatchTaskResponse,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import {
  type Lease,
  type WatchAssignmentsResponse,
  WorkerService,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { bareClient } from "../tasks/bare-client.ts";
import { Latencies, type LatencySample } from "./latencies.ts";

const SHORT_AGENTS = Array.from({ length: 19 }, (_, i) => `short-${i}`);
const LONG_AGENT = "long";
const WORKERS_OF_AN_AGENT = 10;
const TASKS_A_SECOND = 50;
/** Number of tasks of one minute each that run at the same time. With their watchers, they have 1,000 streams. */
const LONG_TASKS = 100;
const WATCHERS_OF_A_TASK = 10;
const LONG_TASK_MS = 60_000;
const REPORT_MS = 5_000;
const TICK_MS = 20;
/** Number of tasks in flight at which the load creates no further task, so that the load is bounded. */
const MAX_IN_FLIGHT = 2_000;
const REOPEN_MS = 500;
const CONNECTIONS = 10;
const OUTPUT = { full: fromJson(ValueSchema, { words: 3 }) };

/** What the clients saw since the last sample. */
export interface LoadSample {
  readonly completed: number;
  readonly inFlight: number;
  /** Streams of events that are open now. */
  readonly streams: number;
  readonly workers: number;
  /** Failed calls and streams. */
  readonly errors: number;
  /** The time from the call that creates a task to the response to its completion. */
  readonly createToComplete: LatencySample;
  /** The time from the call that reports progress to the arrival of its event at a watcher. */
  readonly events: LatencySample;
}

type Clients = ReturnType<typeof clientsAt>;

/** Makes clients with connections of their own. */
function clientsAt(address: string) {
  const tasks = bareClient(TaskService, address, { ownConnection: true });
  const workers = bareClient(WorkerService, address, { ownConnection: true });
  return {
    ...{ tasks, workers, create: tasks.unary<CreateTaskResponse>("CreateTask") },
    complete: workers.unary("CompleteAssignment"),
    report: workers.unary("ReportProgress"),
  };
}

/** 200 workers, 50 short tasks a second, and 1,000 streams that watch 100 longer tasks. */
export class Load {
  readonly agentIds = [...SHORT_AGENTS, LONG_AGENT];
  readonly #clients: readonly Clients[];
  readonly #run = `${process.pid} ${Date.now()}`;
  readonly #createToComplete = new Latencies();
  readonly #events = new Latencies();
  /**
   * The creation time of each short task in milliseconds of performance.now(), by its request id. The request id is
   * also the task's description.
   */
  readonly #createdMs = new Map<string, number>();
  readonly #sentMs = new Map<string, number>();
  #creates = 0;
  #completed = 0;
  #streams = 0;
  #workers = 0;
  #errors = 0;
  #reports = 0;

  constructor(address: string) {
    this.#clients = Array.from({ length: CONNECTIONS }, () => clientsAt(address));
  }

  start(): void {
    for (const agentId of this.agentIds) {
      for (let i = 0; i < WORKERS_OF_AN_AGENT; i++) this.#work(agentId, i);
    }
    for (let i = 0; i < LONG_TASKS; i++)
      setTimeout(() => this.#createLong(), (i * LONG_TASK_MS) / LONG_TASKS);
    const startMs = performance.now();
    let due = 0;
    setInterval(() => {
      for (; due < ((performance.now() - startMs) * TASKS_A_SECOND) / 1000; due++) this.#createShort();
    }, TICK_MS);
  }

  sample(): LoadSample {
    const sample = {
      ...{ completed: this.#completed, inFlight: this.#createdMs.size, errors: this.#errors },
      ...{ streams: this.#streams, workers: this.#workers },
      createToComplete: this.#createToComplete.take(),
      events: this.#events.take(),
    };
    this.#completed = 0;
    this.#errors = 0;
    return sample;
  }

  #clientOf(number: number): Clients {
    return this.#clients[number % CONNECTIONS] as Clients;
  }

  /** Counts a failed call, and prints the error if it is the first one since the last sample. */
  readonly failed = (error: unknown): void => {
    if (this.#errors++ === 0) console.error(String(error));
  };

  #work(agentId: string, number: number): void {
    const { workers } = this.#clientOf(number);
    const request = { agentId, capacity: agentId === LONG_AGENT ? LONG_TASKS : 10, begin: true };
    const stream = workers.stream("WatchAssignments", request);
    this.#workers++;
    stream.on("data", ({ assignment }: WatchAssignmentsResponse) => {
      if (assignment?.lease === undefined) return;
      if (agentId === LONG_AGENT) this.#runLong(assignment.lease, number);
      else void this.#complete(assignment.lease, assignment.task?.description ?? "", number);
    });
    stream.on("error", this.failed);
    stream.on("close", () => {
      this.#workers--;
      setTimeout(() => this.#work(agentId, number), REOPEN_MS);
    });
  }

  #createShort(): void {
    if (this.#createdMs.size >= MAX_IN_FLIGHT) {
      this.failed("too many tasks in flight");
      return;
    }
    const number = this.#creates++;
    const requestId = `${this.#run} ${number}`;
    this.#createdMs.set(requestId, performance.now());
    const agentId = SHORT_AGENTS[number % SHORT_AGENTS.length];
    this.#clientOf(number)
      .create({ requestId, draft: { agentId, description: requestId } })
      .catch((error: unknown) => {
        this.#createdMs.delete(requestId);
        this.failed(error);
      });
  }

  async #complete(lease: Lease, requestId: string, number: number): Promise<void> {
    try {
      await this.#clientOf(number).complete({ lease, output: OUTPUT });
      const createdMs = this.#createdMs.get(requestId);
      if (createdMs !== undefined) this.#createToComplete.add(performance.now() - createdMs);
      this.#createdMs.delete(requestId);
      this.#completed++;
    } catch (error) {
      this.failed(error);
    }
  }

  /** Creates a long task and watches it; when it ends, the next one follows. */
  async #createLong(): Promise<void> {
    const number = this.#creates++;
    const requestId = `${this.#run} ${number}`;
    let taskId = "";
    try {
      const draft = { agentId: LONG_AGENT, description: requestId };
      taskId = (await this.#clientOf(number).create({ requestId, draft })).task?.id ?? "";
    } catch (error) {
      this.failed(error);
      setTimeout(() => this.#createLong(), REOPEN_MS);
      return;
    }
    await Promise.all(Array.from({ length: WATCHERS_OF_A_TASK }, (_, i) => this.#watch(taskId, i)));
    void this.#createLong();
  }

  /** Resolves when the stream of the task's events ends. */
  #watch(taskId: string, number: number): Promise<void> {
    const stream = this.#clientOf(number).tasks.stream("WatchTask", { taskId });
    this.#streams++;
    stream.on("data", ({ taskEvent }: WatchTaskResponse) => {
      if (taskEvent?.payload.case !== "progress") return;
      const sentMs = this.#sentMs.get(`${taskId} ${taskEvent.payload.value.processed}`);
      if (sentMs !== undefined) this.#events.add(performance.now() - sentMs);
    });
    stream.on("error", this.failed);
    return new Promise((resolve) => {
      stream.on("close", () => {
        this.#streams--;
        resolve();
      });
    });
  }

  /** Reports progress every five seconds for a minute, and completes the task. */
  #runLong(lease: Lease, number: number): void {
    const client = this.#clientOf(number);
    const endMs = performance.now() + LONG_TASK_MS;
    const sent: string[] = [];
    const timer = setInterval(() => {
      if (performance.now() >= endMs) {
        clearInterval(timer);
        void client.complete({ lease, output: OUTPUT }).catch(this.failed);
        for (const key of sent) this.#sentMs.delete(key);
        return;
      }
      const processed = ++this.#reports;
      const key = `${lease.taskId} ${processed}`;
      sent.push(key);
      this.#sentMs.set(key, performance.now());
      void client.report({ lease, progress: { processed } }).catch(this.failed);
    }, REPORT_MS);
  }
}
