import { carryOut, Released, WorkFailure } from "@depute/client";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Assignment } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { Timers } from "@depute/core";
import type { Logger } from "@depute/service";
import type { TaskEngine, WorkerStream } from "../../core/index.ts";
import type { Endpoints } from "../peers/agents.ts";
import { UNREACHABLE } from "../rules/refusal.ts";
import { type Push, pause } from "./at-peer.ts";
import { workAt } from "./push-work.ts";
import { ownWorkerCalls } from "./worker-calls.ts";

/** Agents whose work is noticed at once; what is more is found by the next look. */
const MAX_NOTICED = 10_000;
/** Agents that one look finds. */
const LOOK_BATCH = 256;
/** Milliseconds between looks. */
const LOOK_MS = 2000;

/** Milliseconds until a registry that was away is asked again. */
const AWAY_MS = 1000;

export interface DispatcherOptions {
  readonly engine: TaskEngine;
  readonly timers: Timers;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
  readonly endpoints: Endpoints;
  readonly push: Push;
  readonly log: Logger;
  /** A name of this process that it has again when it comes back. */
  readonly instance: string;
  /** Tasks at endpoints at once. */
  readonly capacity: number;
  /** Of these, for one agent. */
  readonly perAgent: number;
}

interface Running {
  readonly agentId: string;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** Takes the work of agents that have an endpoint, as far as there is room, and has it done there. */
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
    // No agent's id begins with a colon, so no worker of another kind holds anything by this name.
    this.#holder = `:endpoint/${options.instance}`;
    options.engine.observe(async (tx, { after }) => {
      const { status, agentId } = after.task;
      if (status === TaskStatus.PENDING) tx.afterCommit(() => this.notice(agentId));
    });
  }

  /** Takes up what a process before this one was doing, and looks for work from then on. */
  async start(): Promise<void> {
    const held = await this.#options.engine.workers.heldBy(this.#holder);
    for (const assignment of held) this.#carryOut(assignment);
    this.#look();
  }

  /** Work waits for an agent. */
  notice(agentId: string): void {
    if (this.#isClosing || this.#options.endpoints.hasNone(agentId)) return;
    if (this.#noticed.size < MAX_NOTICED) this.#noticed.add(agentId);
    this.#pump();
  }

  /** Takes no more, and gives back what is being done: it goes on at its endpoints, and is taken up again there. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancelLook();
    await this.#pumping;
    for (const { stop } of this.#running) stop.abort(new Released());
    await Promise.all([...this.#running].map(({ done }) => done));
  }

  /** A process that drains takes nothing new. */
  get #isClosing(): boolean {
    return this.#closing.signal.aborted || this.#options.stopping.aborted;
  }

  /** What waits since before this process, or was not noticed. */
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
      // What was noticed when the last agent had been looked at.
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
        // The next look finds it again.
        this.#complain(err);
      }
    }
  }

  /** @returns whether more may wait for the agent than was taken */
  async #take(agentId: string): Promise<boolean> {
    const { engine, endpoints, capacity, perAgent } = this.#options;
    const endpoint = await endpoints.of(agentId, this.#closing.signal);
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
    const taken = await engine.workers.take(stream, room);
    for (const assignment of taken) this.#carryOut(assignment);
    return taken.length > 0;
  }

  #carryOut(assignment: Assignment): void {
    const { lease, task } = assignment;
    if (lease === undefined || task === undefined) return;
    const { push, log } = this.#options;
    const { agentId } = task;
    const stop = new AbortController();
    this.#byAgent.set(agentId, (this.#byAgent.get(agentId) ?? 0) + 1);
    const done = carryOut(
      {
        calls: this.#calls,
        work: async (input, context) => {
          const endpoint = await this.#endpointOf(agentId, context.signal);
          // It has none any more, so that somebody else is to do the work.
          if (endpoint === "") stop.abort(new Released());
          context.signal.throwIfAborted();
          try {
            return await workAt(push, endpoint, assignment, lease)(input, context);
          } catch (thrown) {
            if (thrown instanceof WorkFailure) {
              const { reason, message } = thrown;
              // What an endpoint itself says of the work is for the delegator alone.
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
        // There is room again.
        this.notice(agentId);
      });
    const running: Running = { agentId, stop, done };
    this.#running.add(running);
  }

  /** Waits for the registry, as work that is held does for whatever is away for a while. */
  async #endpointOf(agentId: string, signal: AbortSignal): Promise<string> {
    for (;;) {
      try {
        return await this.#options.endpoints.of(agentId, signal);
      } catch (err) {
        signal.throwIfAborted();
        this.#complain(err);
        await pause(this.#options.timers, AWAY_MS, signal);
      }
    }
  }

  #complain(err: unknown): void {
    if (!this.#closing.signal.aborted) this.#options.log.warn({ err }, "work at endpoints did not go on");
  }
}
