import { Released, runAssignment, WorkFailure } from "@depute/client";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Assignment } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { pause, type Timers } from "@depute/core";
import type { Logger } from "@depute/service";
import type { TaskEngine, WorkerStream } from "../../core/index.ts";
import type { Endpoints } from "../peers/agents.ts";
import { UNREACHABLE } from "../rules/refusal.ts";
import type { Push } from "./at-peer.ts";
import { workAt } from "./push-work.ts";
import { ownWorkerCalls } from "./worker-calls.ts";

/** Maximum number of agents in the set of agents with new tasks. The periodic scan finds any other agent. */
const MAX_NOTICED = 10_000;
/** Maximum number of agents that one scan finds. */
const LOOK_BATCH = 256;
/** Milliseconds between two scans. */
const LOOK_MS = 2000;

/** Milliseconds before the next call to the registry after it was unavailable. */
const AWAY_MS = 1000;

export interface DispatcherOptions {
  readonly engine: TaskEngine;
  readonly timers: Timers;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
  readonly endpoints: Endpoints;
  readonly push: Push;
  readonly log: Logger;
  /** The instance name of this process. Without replicas, a restart keeps the name. */
  readonly instance: string;
  /** Maximum number of tasks at endpoints at the same time. */
  readonly capacity: number;
  /** Maximum number of concurrent tasks of one agent. */
  readonly perAgent: number;
}

interface Running {
  readonly agentId: string;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

/** Leases tasks of agents with an endpoint, up to the capacity, and runs them at the endpoints. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #calls: ReturnType<typeof ownWorkerCalls>;
  readonly #holder: string;
  readonly #noticed = new Set<string>();
  readonly #running = new Set<Running>();
  readonly #byAgent = new Map<string, number>();
  readonly #closing = new AbortController();
  #lookedAt = "";
  #cancelLook = () => {};
  #pumping: Promise<void> | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#calls = ownWorkerCalls(options.engine.workers);
    // No agent id begins with a colon, so this holder name differs from the names of all other workers.
    this.#holder = `:endpoint/${options.instance}`;
    options.engine.observe(async (tx, { after }) => {
      const { status, agentId } = after.task;
      if (status === TaskStatus.PENDING) tx.afterCommit(() => this.notice(agentId));
    });
  }

  /** Resumes the tasks that the previous process left at endpoints, then searches for pending tasks. */
  async start(): Promise<void> {
    const heldAssignments = await this.#options.engine.workers.heldBy(this.#holder);
    for (const assignment of heldAssignments) this.#runAssignment(assignment);
    this.#look();
  }

  /** Adds an agent to the set of agents with new tasks. */
  notice(agentId: string): void {
    if (this.#isClosing || this.#options.endpoints.hasNone(agentId)) return;
    if (this.#noticed.size < MAX_NOTICED) this.#noticed.add(agentId);
    this.#pump();
  }

  /**
   * Stops leasing tasks, and stops the running attempts without cancelling their tasks. The endpoints continue their
   * work, and the next process resumes the attempts.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelLook();
    await this.#pumping;
    for (const { stop } of this.#running) stop.abort(new Released());
    await Promise.all([...this.#running].map(({ ended }) => ended));
  }

  /** Whether this process takes no new work, because it drains or closes. */
  get #isClosing(): boolean {
    return this.#closing.signal.aborted || this.#options.stopping.aborted;
  }

  /**
   * Finds agents with pending tasks that no wake-up announced. Such tasks existed before this process started, or their
   * wake-up was lost.
   */
  #look(): void {
    const { engine, timers } = this.#options;
    engine.workers
      .agentsWithWork(this.#lookedAt, LOOK_BATCH)
      .then(
        (agentIds) => {
          this.#lookedAt = agentIds.length < LOOK_BATCH ? "" : (agentIds.at(-1) ?? "");
          for (const agentId of agentIds) this.notice(agentId);
        },
        (err: unknown) => this.#complain(err),
      )
      .finally(() => {
        if (this.#closing.signal.aborted) return;
        this.#cancelLook = timers.after(LOOK_MS, () => this.#look());
      });
  }

  #pump(): void {
    if (this.#pumping !== undefined || this.#isClosing) return;
    this.#pumping = this.#takeAll().finally(() => {
      this.#pumping = undefined;
      // While `#takeAll` handled the last agent, further agents may have got new tasks.
      if (this.#noticed.size > 0 && this.#running.size < this.#options.capacity) this.#pump();
    });
  }

  async #takeAll(): Promise<void> {
    const { capacity } = this.#options;
    for (const agentId of this.#noticed) {
      if (this.#isClosing || this.#running.size >= capacity) return;
      this.#noticed.delete(agentId);
      try {
        if (await this.#take(agentId)) this.#noticed.add(agentId);
      } catch (err) {
        // The next scan finds the agent's tasks again.
        this.#complain(err);
      }
    }
  }

  /**
   * Leases tasks of an agent and runs them.
   *
   * @returns whether more tasks of the agent may be pending
   */
  async #take(agentId: string): Promise<boolean> {
    const { engine, endpoints, capacity, perAgent } = this.#options;
    const endpoint = await endpoints.endpointOf(agentId, this.#closing.signal);
    if (endpoint === "") return false;
    const room = Math.min(capacity - this.#running.size, perAgent - (this.#byAgent.get(agentId) ?? 0));
    if (room <= 0) return false;
    const stream: WorkerStream = {
      agentId,
      worker: "endpoint",
      capacity,
      capabilityIds: [],
      holder: this.#holder,
    };
    const assignments = await engine.workers.take(stream, room);
    for (const assignment of assignments) this.#runAssignment(assignment);
    return assignments.length > 0;
  }

  #runAssignment(assignment: Assignment): void {
    const { lease, task } = assignment;
    if (lease === undefined || task === undefined) return;
    const { push, log } = this.#options;
    const { agentId } = task;
    const stop = new AbortController();
    this.#byAgent.set(agentId, (this.#byAgent.get(agentId) ?? 0) + 1);
    const run = runAssignment(
      {
        calls: this.#calls,
        work: async (input, context) => {
          const endpoint = await this.#endpointOf(agentId, context.signal);
          // The agent has lost its endpoint, so the platform releases the task for another worker.
          if (endpoint === "") stop.abort(new Released());
          context.signal.throwIfAborted();
          try {
            return await workAt(push, endpoint, assignment, lease)(input, context);
          } catch (thrown) {
            if (thrown instanceof WorkFailure) {
              const { reason, message } = thrown;
              // Only the delegator may read the endpoint's message. So the log gets the message only if the endpoint
              // was unreachable.
              const why = reason === UNREACHABLE.reason ? { why: message } : {};
              log.info({ agentId, task: task.id, reason, ...why }, "work at an endpoint failed");
            }
            throw thrown;
          }
        },
      },
      assignment,
      lease,
      stop,
    )
      .catch((err: unknown) => {
        if (!stop.signal.aborted) this.#complain(err);
      })
      .finally(() => {
        this.#running.delete(running);
        const others = (this.#byAgent.get(agentId) ?? 1) - 1;
        if (others === 0) this.#byAgent.delete(agentId);
        else this.#byAgent.set(agentId, others);
        // The end of this task frees capacity for the agent's next task.
        this.notice(agentId);
      });
    const running: Running = { agentId, stop, ended: run };
    this.#running.add(running);
  }

  /** Returns the agent's endpoint. Retries while the registry is unavailable, until the task's signal aborts. */
  async #endpointOf(agentId: string, signal: AbortSignal): Promise<string> {
    for (;;) {
      try {
        return await this.#options.endpoints.endpointOf(agentId, signal);
      } catch (err) {
        signal.throwIfAborted();
        this.#complain(err);
        await pause(AWAY_MS, this.#options.timers, signal);
      }
    }
  }

  #complain(err: unknown): void {
    if (!this.#closing.signal.aborted)
      this.#options.log.warn({ err }, "work at endpoints could not continue");
  }
}
