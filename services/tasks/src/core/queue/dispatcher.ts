import { ALL_KEYS, type Bus } from "@depute/bus";
import type { Assignment } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { Timers } from "@depute/core";
import type { ReadTx, WriteTx } from "@depute/store";
import type { ContextMemory } from "../contexts/context-memory.ts";
import type { Engine } from "../engine/engine.ts";
import { DISPATCH_TOPIC, type DispatchKind, readNewsKey, STREAM_END_TOPIC } from "../engine/topics.ts";
import {
  agentsWithWorkAmong,
  type DelegateLimitsRow,
  readDelegateLimits,
  waitingTasks,
} from "../store/queue-rows.ts";
import { AssignmentStream } from "./assignment-stream.ts";
import { CLAIM_BATCH, claimWithin, roomOf, type WorkerStream } from "./claim.ts";

export interface DispatcherOptions {
  readonly engine: Engine;
  readonly memory: ContextMemory;
  readonly bus: Bus;
  readonly timers: Timers;
  /** Milliseconds between polls for pending tasks that no wake-up announced. */
  readonly pollMs: number;
  /** Receives errors; the next poll tries again. */
  readonly onError: (error: unknown) => void;
}

const FULL = { room: 0, isBounded: false };

/** The open streams of one agent's workers. */
interface Delegate {
  /** The streams, in the order of the next dispatch. */
  readonly streams: Set<AssignmentStream>;
  /** Whether a dispatch is scheduled. */
  isQueued: boolean;
  /** Whether some tasks may still be pending after the last dispatch. */
  mayWait: boolean;
  /**
   * Whether one limit bounds all streams of the agent together. Each task for one stream then leaves less capacity for
   * the other streams.
   */
  isBounded: boolean;
  /** Whether a search for pending tasks runs now; `mustLookAgain` requests one more search after it. */
  isLooking: boolean;
  mustLookAgain: boolean;
}

/**
 * Dispatches pending tasks to worker streams. The engine announces new tasks and freed capacity before the change
 * commits. One transaction then dispatches to all streams of the agent, in the same group commit as the change. A poll
 * finds tasks that the engine did not announce.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #delegates = new Map<string, Delegate>();
  #unsubscribe: readonly (() => void)[] = [];
  /** Cancels the next poll; undefined without streams. */
  #cancelPoll: (() => void) | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { engine, bus } = options;
    engine.onWork({
      onWaiting: (agentId) => this.#onWaiting(agentId),
      onRoom: (agentId) => this.#onRoom(agentId),
      onLimits: (agentId) => this.#onLimits(agentId),
    });
    if (!engine.isShared) return;
    this.#unsubscribe = [
      bus.subscribe(DISPATCH_TOPIC, (key) => this.#onOthersWork(key)),
      bus.subscribe(STREAM_END_TOPIC, (key) => this.#onStreamEnd(key)),
    ];
  }

  /** Opens a stream, and dispatches tasks to it until it closes. */
  open(worker: WorkerStream): AssignmentStream {
    const { agentId } = worker;
    const delegate = this.#delegates.get(agentId) ?? {
      streams: new Set(),
      isQueued: false,
      mayWait: true,
      isBounded: true,
      isLooking: false,
      mustLookAgain: false,
    };
    const stream = new AssignmentStream(worker, this.#options.engine, () => {
      delegate.streams.delete(stream);
      if (delegate.streams.size > 0 || this.#delegates.get(agentId) !== delegate) return;
      this.#delegates.delete(agentId);
      if (this.#delegates.size === 0) this.#stopPolls();
    });
    delegate.streams.add(stream);
    this.#delegates.set(agentId, delegate);
    if (this.#cancelPoll === undefined) this.#pollLater();
    this.#dispatch(delegate);
    return stream;
  }

  /**
   * Finds a stream for a task that is about to be created, so that the task skips the queue. Returns undefined while
   * older tasks may be pending, because older tasks come first. Returns undefined also while the streams' free capacity
   * is unknown.
   *
   * @param limits the limits that `limitsOf` reads in the transaction that creates the task
   */
  async match(
    limits: Promise<DelegateLimitsRow | undefined> | undefined,
    agentId: string,
    capabilityId: string,
  ): Promise<AssignmentStream | undefined> {
    const stream = this.#match(agentId, capabilityId);
    if (stream === undefined || (await limits) === undefined) return stream;
    const delegate = this.#delegates.get(agentId);
    if (delegate !== undefined) delegate.isBounded = true;
    return undefined;
  }

  /**
   * Reads the limits of an agent for `match`. Returns undefined if no stream can match, or if this process knows the
   * limits. In a service with replicas, another replica may have set them after the last dispatch.
   */
  limitsOf(tx: ReadTx, agentId: string): Promise<DelegateLimitsRow | undefined> | undefined {
    if (!this.#options.engine.isShared || !this.#delegates.has(agentId)) return undefined;
    const limits = readDelegateLimits(tx, agentId);
    limits.catch(() => {});
    return limits;
  }

  #match(agentId: string, capabilityId: string): AssignmentStream | undefined {
    const delegate = this.#delegates.get(agentId);
    if (delegate === undefined || delegate.mayWait || delegate.isQueued || delegate.isBounded)
      return undefined;
    for (const stream of delegate.streams) {
      const { capabilityIds } = stream.worker;
      if (stream.room <= 0 || (capabilityIds.length > 0 && !capabilityIds.includes(capabilityId))) continue;
      stream.room--;
      if (delegate.streams.delete(stream)) delegate.streams.add(stream);
      return stream;
    }
    return undefined;
  }

  /** Ends an agent's streams with this name at all replicas, after they have sent their dispatched assignments. */
  end(agentId: string, streamId: string): void {
    this.#endOwn(agentId, streamId);
    const { engine, bus } = this.#options;
    if (engine.isShared) bus.publish(STREAM_END_TOPIC, JSON.stringify([agentId, streamId]));
  }

  #endOwn(agentId: string, streamId: string): void {
    for (const stream of [...(this.#delegates.get(agentId)?.streams ?? [])]) {
      if (stream.worker.streamId === streamId) stream.finish();
    }
  }

  /** Forgets all streams. */
  close(): void {
    for (const stop of this.#unsubscribe) stop();
    this.#stopPolls();
    this.#delegates.clear();
  }

  #onOthersWork(key: string): void {
    if (key === ALL_KEYS) {
      for (const delegate of this.#delegates.values()) this.#onNews(delegate, "limits");
      return;
    }
    const { replica, kind, agentId } = readNewsKey(key);
    const delegate = this.#delegates.get(agentId);
    if (delegate !== undefined && replica !== this.#options.engine.replica) this.#onNews(delegate, kind);
  }

  #onNews(delegate: Delegate, kind: DispatchKind): void {
    if (kind === "limits") delegate.isBounded = true;
    // The news does not state the free capacity of a stream. So no stream counts as full until the next dispatch counts
    // the held tasks.
    for (const stream of delegate.streams) stream.isFull = false;
    // News of free capacity needs a search only if tasks may be pending.
    if (kind !== "room" || delegate.mayWait) void this.#lookSoon(delegate);
  }

  /** Searches for pending tasks, one search at a time. The promise never rejects. */
  async #lookSoon(delegate: Delegate): Promise<void> {
    delegate.mustLookAgain = true;
    if (delegate.isLooking) return;
    delegate.isLooking = true;
    while (delegate.mustLookAgain && delegate.streams.size > 0) {
      delegate.mustLookAgain = false;
      await this.#look(delegate).catch(this.#options.onError);
    }
    delegate.isLooking = false;
  }

  #onStreamEnd(key: string): void {
    // If the wake-up was lost, the stream stays open until its worker ends the connection.
    if (key === ALL_KEYS) return;
    const [agentId, streamId] = JSON.parse(key) as [string, string];
    this.#endOwn(agentId, streamId);
  }

  #onWaiting(agentId: string): void {
    const delegate = this.#delegates.get(agentId);
    if (delegate === undefined) return;
    delegate.mayWait = true;
    if ([...delegate.streams].some(({ isFull }) => !isFull)) this.#dispatch(delegate);
  }

  #onRoom(agentId: string): void {
    const delegate = this.#delegates.get(agentId);
    if (delegate === undefined) return;
    let isKnown = true;
    for (const stream of delegate.streams) {
      if (stream.room <= 0) isKnown = false;
      stream.isFull = false;
    }
    // A `room` of 0 may mean that the room is unknown. Only a dispatch can then count the tasks that the stream may
    // take.
    if (delegate.mayWait || !isKnown) this.#dispatch(delegate);
  }

  /** After a change of the agent's limits, marks its streams as not full, with unknown room, and dispatches. */
  #onLimits(agentId: string): void {
    const delegate = this.#delegates.get(agentId);
    if (delegate === undefined) return;
    delegate.isBounded = true;
    for (const stream of delegate.streams) {
      stream.isFull = false;
      stream.room = 0;
    }
    this.#dispatch(delegate);
  }

  #dispatch(delegate: Delegate): void {
    // The scheduled dispatch covers this change too.
    if (delegate.isQueued) return;
    delegate.isQueued = true;
    const { engine, memory, onError } = this.#options;
    const dispatchWithin = (tx: WriteTx) => {
      delegate.isQueued = false;
      return this.#dispatchWithin(tx, delegate).catch((error: unknown) => {
        // The rollback undoes the dispatches of this transaction, so no stream counts as full.
        for (const stream of delegate.streams) stream.isFull = false;
        throw error;
      });
    };
    // Each run reads the free capacity again, so the store may repeat this transaction.
    memory
      .using(() => engine.store.write(dispatchWithin, { isRepeatable: true }))
      .then((dispatched) => {
        for (const [stream, assignments] of dispatched) stream.deliver(assignments);
      })
      .catch((error: unknown) => {
        delegate.isQueued = false;
        onError(error);
      });
  }

  async #dispatchWithin(tx: WriteTx, delegate: Delegate): Promise<[AssignmentStream, Assignment[]][]> {
    const { engine, memory } = this.#options;
    const dispatched: [AssignmentStream, Assignment[]][] = [];
    let mayWait = false;
    let isCut = false;
    // After an undone dispatch, the free capacity is unknown, and the tasks are pending again.
    tx.afterRun(
      () => {},
      () => {
        delegate.mayWait = true;
        for (const stream of delegate.streams) {
          stream.isFull = false;
          stream.room = 0;
        }
      },
    );
    for (const stream of [...delegate.streams]) {
      const { room, isBounded } = stream.isFull ? FULL : await roomOf(tx, stream.worker);
      stream.isFull = room <= 0;
      stream.room = room;
      if (room <= 0) {
        mayWait = true;
        continue;
      }
      const limit = Math.min(room, CLAIM_BATCH);
      const assignments = await claimWithin(tx, engine, stream.worker, limit, memory);
      stream.room -= assignments.length;
      delegate.isBounded = isBounded;
      if (assignments.length === limit) {
        mayWait = true;
        if (limit < room) isCut = true;
        else stream.isFull = true;
      }
      if (assignments.length === 0) continue;
      dispatched.push([stream, assignments]);
      // Moves the stream to the end, so that other streams get tasks first next time.
      if (delegate.streams.delete(stream)) delegate.streams.add(stream);
    }
    delegate.mayWait = mayWait;
    if (isCut) tx.afterRun(() => this.#dispatch(delegate));
    return dispatched;
  }

  #pollLater(): void {
    const { timers, pollMs, onError } = this.#options;
    this.#cancelPoll = timers.after(pollMs, () => {
      this.#pollLater();
      this.#poll().catch(onError);
    });
  }

  #stopPolls(): void {
    this.#cancelPoll?.();
    this.#cancelPoll = undefined;
  }

  /** Finds the agents that have streams and pending tasks, by one read, and then searches the queue of each. */
  async #poll(): Promise<void> {
    const { engine } = this.#options;
    const agentIds = [...this.#delegates.keys()];
    const found = await engine.store.read((tx) => agentsWithWorkAmong(tx, agentIds, engine.clock.now()));
    for (const agentId of found) {
      const delegate = this.#delegates.get(agentId);
      if (delegate !== undefined) void this.#lookSoon(delegate);
    }
  }

  /**
   * Searches for pending tasks in a read transaction, because most searches find none and must not wait for writers.
   */
  async #look(delegate: Delegate): Promise<void> {
    const { engine } = this.#options;
    const isWorth = await engine.store.read(async (tx) => {
      for (const { worker } of delegate.streams) {
        if ((await waitingTasks(tx, worker, engine.clock.now(), 1)).length > 0) return true;
      }
      return false;
    });
    if (!isWorth) return;
    delegate.mayWait = true;
    for (const stream of delegate.streams) stream.isFull = false;
    this.#dispatch(delegate);
  }
}
