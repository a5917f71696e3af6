import type { Assignment } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { Timers } from "@depute/core";
import type { WriteTx } from "@depute/store";
import type { ContextMemory } from "../contexts/context-memory.ts";
import type { Engine } from "../engine/engine.ts";
import { waitingTasks } from "../store/queue-rows.ts";
import { AssignmentStream } from "./assignment-stream.ts";
import { CLAIM_BATCH, claimWithin, roomOf, type WorkerStream } from "./claim.ts";

export interface DispatcherOptions {
  readonly engine: Engine;
  readonly memory: ContextMemory;
  readonly timers: Timers;
  /** Milliseconds between looks for work of which nobody told. */
  readonly pollMs: number;
  /** Told of what went wrong; the next look tries again. */
  readonly onError: (error: unknown) => void;
}

const FULL = { room: 0, isBounded: false };

/** The open streams of one agent's workers. */
interface Delegate {
  /** In the order in which they are given work. */
  readonly streams: Set<AssignmentStream>;
  /** Whether a transaction that hands out is about to run. */
  isQueued: boolean;
  /** Whether there may be tasks that nobody had room for. */
  mayWait: boolean;
  /** Whether what one stream takes leaves less for the others. */
  isBounded: boolean;
  cancelPoll: () => void;
}

/**
 * Hands waiting tasks to the streams of workers. Whatever made them wait or made room for them tells it before it is
 * durable, and one transaction hands out to all streams of an agent, so that handing out shares commits with what it
 * follows. A look now and then finds what nobody told of.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #delegates = new Map<string, Delegate>();

  constructor(options: DispatcherOptions) {
    this.#options = options;
    options.engine.onWork({
      onWaiting: (agentId) => this.#onWaiting(agentId),
      onRoom: (agentId) => this.#onRoom(agentId),
      onLimits: (agentId) => this.#onLimits(agentId),
    });
  }

  /** Begins to give work to a stream, until it is closed. */
  open(worker: WorkerStream): AssignmentStream {
    const { agentId } = worker;
    const delegate = this.#delegates.get(agentId) ?? {
      streams: new Set(),
      isQueued: false,
      mayWait: true,
      isBounded: true,
      cancelPoll: () => {},
    };
    const stream = new AssignmentStream(worker, this.#options.engine, () => {
      delegate.streams.delete(stream);
      if (delegate.streams.size > 0 || this.#delegates.get(agentId) !== delegate) return;
      this.#delegates.delete(agentId);
      delegate.cancelPoll();
    });
    delegate.streams.add(stream);
    if (!this.#delegates.has(agentId)) {
      this.#delegates.set(agentId, delegate);
      this.#pollLater(delegate);
    }
    this.#handOut(delegate);
    return stream;
  }

  /**
   * A stream that takes a task which is about to be created, so that it never waits. There is none while others may wait,
   * since it is not its turn, nor while it is not known which stream has room.
   */
  match(agentId: string, capabilityId: string): AssignmentStream | undefined {
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

  /** Ends an agent's streams of this name, once what was handed out to them is sent. */
  end(agentId: string, streamId: string): void {
    for (const stream of [...(this.#delegates.get(agentId)?.streams ?? [])]) {
      if (stream.worker.streamId === streamId) stream.finish();
    }
  }

  /** Forgets all streams. */
  close(): void {
    for (const { cancelPoll } of this.#delegates.values()) cancelPoll();
    this.#delegates.clear();
  }

  #onWaiting(agentId: string): void {
    const delegate = this.#delegates.get(agentId);
    if (delegate === undefined) return;
    delegate.mayWait = true;
    if ([...delegate.streams].some(({ isFull }) => !isFull)) this.#handOut(delegate);
  }

  #onRoom(agentId: string): void {
    const delegate = this.#delegates.get(agentId);
    if (delegate === undefined) return;
    let isKnown = true;
    for (const stream of delegate.streams) {
      if (stream.room <= 0) isKnown = false;
      stream.isFull = false;
    }
    // How much room there is now is found out by handing out.
    if (delegate.mayWait || !isKnown) this.#handOut(delegate);
  }

  /** What is known of room is not true any more. */
  #onLimits(agentId: string): void {
    const delegate = this.#delegates.get(agentId);
    if (delegate === undefined) return;
    delegate.isBounded = true;
    for (const stream of delegate.streams) {
      stream.isFull = false;
      stream.room = 0;
    }
    this.#handOut(delegate);
  }

  #handOut(delegate: Delegate): void {
    // What comes before it runs, it finds.
    if (delegate.isQueued) return;
    delegate.isQueued = true;
    const { engine, onError } = this.#options;
    engine.store
      .write((tx) => {
        delegate.isQueued = false;
        return this.#handOutWithin(tx, delegate);
      })
      .then((given) => {
        for (const [stream, assignments] of given) stream.deliver(assignments);
      })
      .catch((error: unknown) => {
        delegate.isQueued = false;
        onError(error);
      });
  }

  async #handOutWithin(tx: WriteTx, delegate: Delegate): Promise<[AssignmentStream, Assignment[]][]> {
    const { engine, memory } = this.#options;
    const given: [AssignmentStream, Assignment[]][] = [];
    let mayWait = false;
    let isCut = false;
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
      given.push([stream, assignments]);
      // The others come first the next time.
      if (delegate.streams.delete(stream)) delegate.streams.add(stream);
    }
    delegate.mayWait = mayWait;
    if (isCut) tx.afterRun(() => this.#handOut(delegate));
    return given;
  }

  #pollLater(delegate: Delegate): void {
    const { timers, pollMs } = this.#options;
    delegate.cancelPoll = timers.after(pollMs, () => {
      this.#pollLater(delegate);
      this.#look(delegate).catch(this.#options.onError);
    });
  }

  /** Most looks find nothing, and those must not queue with the writers. */
  async #look(delegate: Delegate): Promise<void> {
    const { engine } = this.#options;
    const isWorth = await engine.store.read(async (tx) => {
      for (const { worker } of delegate.streams) {
        if ((await waitingTasks(tx, worker, engine.clock.now(), 1)).length > 0) return true;
      }
      return false;
    });
    if (!isWorth) return;
    for (const stream of delegate.streams) stream.isFull = false;
    this.#handOut(delegate);
  }
}
