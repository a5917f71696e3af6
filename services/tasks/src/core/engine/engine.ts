import type { Bus } from "@depute/bus";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type Clock, type Random, randomUuid, type Timers } from "@depute/core";
import type { ServiceDeps } from "@depute/service";
import type { ReadTx, Store, WriteOptions, WriteTx } from "@depute/store";
import type { MissingContextRule, TaskChange, TaskEventName, TaskObserver } from "../hooks.ts";
import { type Advance, advanceByTime } from "../rules/advance.ts";
import { cancelIfOpen } from "../rules/cancel.ts";
import { nextDeadline } from "../rules/limits.ts";
import { hasOnlyBegun, type TaskRecord } from "../rules/record.ts";
import { isTerminal, statusName } from "../rules/state-machine.ts";
import { taskNotFound } from "../rules/visibility.ts";
import { deleteBlocks, endDelegation } from "../store/delegation-rows.ts";
import { removeOpenTask } from "../store/open-task-rows.ts";
import { deleteReports } from "../store/request-rows.ts";
import {
  dueTasks,
  earliestDeadline,
  insertEvents,
  readEvents,
  readTask,
  updateLease,
  updateQueued,
  updateTask,
} from "../store/task-rows.ts";
import { openChildren } from "../store/tree-rows.ts";
import { deleteWorkState } from "../store/work-rows.ts";
import { RecordCache } from "./record-cache.ts";
import { RecordReads } from "./record-reads.ts";
import { settleAttempt, settleTask } from "./spend.ts";
import { TaskEnds } from "./task-ends.ts";
import {
  ASSIGNMENT_TOPIC,
  DELEGATOR_TOPIC,
  DISPATCH_TOPIC,
  type DispatchKind,
  TASK_TOPIC,
  toNewsKey,
} from "./topics.ts";

/** Maximum number of backoffs for which the engine sets a timer. Workers find further tasks by polling. */
const MAX_LATER = 10_000;
/**
 * Maximum number of open tasks in the record cache. A record takes a few kilobytes, or up to 70 kilobytes with a long
 * description.
 */
const MAX_RECORDS = 512;

export interface EngineOptions {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Source of randomness for the jitter of backoffs. */
  readonly random: Random;
  readonly quotas: ServiceDeps["quotas"];
}

/** Decides the next state of a task. The function may await only calls of `tx`. */
export type Decide = (record: TaskRecord, nowMs: number, tx: WriteTx) => Promise<Advance> | Advance;

/**
 * Receives notice of pending tasks and free capacity synchronously, before the commit. A dispatch is therefore in the
 * same commit as the change that causes it.
 */
export interface WorkListener {
  /** Called when a task of the agent is pending and its backoff is over. */
  onWaiting(agentId: string): void;
  /** Called when a task has left a worker of the agent, so that the worker has free capacity. */
  onRoom(agentId: string): void;
  /** Called when the maximum number of tasks that the agent's workers may hold has changed. */
  onLimits(agentId: string): void;
}

/** Receives each deadline that a change sets, and so knows when the next time limit passes. */
export interface DeadlineListener {
  /** @param atMs epoch milliseconds */
  notice(atMs: number): void;
}

/**
 * Reads and changes tasks. One transaction writes an event and the new state. Waiting calls wake up after the commit.
 */
export class Engine {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  /** The quotas: the maximum number of open tasks of a principal, and of an organization. */
  readonly quotas: ServiceDeps["quotas"];
  /** Resolves calls that wait for the end of a task. */
  readonly ends = new TaskEnds();
  /** Whether other replicas change tasks at the same time. */
  readonly isShared: boolean;
  /** Identifies this process among the replicas. */
  readonly replica = randomUuid();
  readonly #bus: Bus;
  readonly #timers: Timers;
  readonly #later = new Set<() => void>();
  readonly #observers: { observer: TaskObserver; events: ReadonlySet<TaskEventName> | undefined }[] = [];
  readonly #records = new RecordCache(MAX_RECORDS);
  readonly #reads: RecordReads;
  #work: WorkListener = { onWaiting() {}, onRoom() {}, onLimits() {} };
  #allowsMissingContexts: MissingContextRule = async () => false;
  #deadlines: DeadlineListener | undefined;
  #onDelegationEnd: () => void = () => {};

  constructor({ store, bus, clock, timers, random, quotas }: EngineOptions) {
    this.store = store;
    this.quotas = quotas;
    this.clock = clock;
    this.random = random;
    this.#bus = bus;
    this.#timers = timers;
    this.isShared = store.sharing !== undefined;
    this.#reads = new RecordReads(store, timers);
    store.sharing?.onOthersCommit(() => this.#records.clear());
  }

  /** Cancels the wake-ups that wait for the end of a backoff. */
  close(): void {
    for (const cancel of this.#later) cancel();
    this.#later.clear();
  }

  /** Sets the listener for the deadlines that changes set. */
  onDeadline(listener: DeadlineListener): void {
    this.#deadlines = listener;
  }

  /** Sets the listener that the engine calls when a delegation has ended. */
  onDelegationEnd(listener: () => void): void {
    this.#onDelegationEnd = listener;
  }

  /** Sets the listener for pending tasks and for workers with free capacity. */
  onWork(listener: WorkListener): void {
    this.#work = listener;
  }

  /**
   * Registers an observer. Each transaction runs the observers in the order of their registration.
   *
   * @param events the observer runs only for changes with one of these events; if absent, for every change
   */
  observe(observer: TaskObserver, events?: ReadonlySet<TaskEventName>): void {
    this.#observers.push({ observer, events });
  }

  /**
   * Sets the rule that decides whether the queue may dispatch a task that has lost a context. Without a rule, every
   * task needs all its contexts.
   */
  allowMissingContexts(rule: MissingContextRule): void {
    this.#allowsMissingContexts = rule;
  }

  /** Whether the queue may dispatch a task that has lost one of its contexts. */
  mayLackContexts(tx: ReadTx, taskId: string): Promise<boolean> {
    return this.#allowsMissingContexts(tx, taskId);
  }

  /** Runs the observers for a change that the transaction has written. */
  async notify(tx: WriteTx, change: TaskChange): Promise<void> {
    for (const { observer, events } of this.#observers) {
      if (events === undefined || change.events.some(({ payload }) => events.has(payload.case))) {
        await observer(tx, change);
      }
    }
  }

  /** Returns the stored record of a task; undefined if the task does not exist. */
  async find(taskId: string): Promise<TaskRecord | undefined> {
    return this.#reads.find(taskId);
  }

  /**
   * Returns the newest record of a task, even if the record is not committed. Use this method only for checks that a
   * later change repeats.
   */
  async peek(taskId: string): Promise<TaskRecord | undefined> {
    return this.#newest(taskId) ?? (await this.find(taskId));
  }

  /**
   * Returns the record of a task that has ended; undefined for any other task. To wait for an end, subscribe to `ends`
   * before this call, so that no end is missed.
   */
  async ended(taskId: string): Promise<TaskRecord | undefined> {
    const record = this.#newest(taskId) ?? (await this.find(taskId));
    return record !== undefined && isTerminal(record.task.status) ? record : undefined;
  }

  /** Returns up to `limit` events of a task after a sequence, in order. */
  async events(taskId: string, after: bigint, limit: number): Promise<TaskEvent[]> {
    return this.store.read((tx) => readEvents(tx, taskId, after, limit));
  }

  /** Returns the ids of up to `limit` tasks with a time limit that has passed. */
  async due(limit: number): Promise<string[]> {
    const nowMs = this.clock.now();
    return this.store.read((tx) => dueTasks(tx, nowMs, limit));
  }

  /** Returns the earliest deadline of all tasks, epoch milliseconds; undefined without an open task. */
  async earliestDeadline(): Promise<number | undefined> {
    return this.store.read(earliestDeadline);
  }

  /**
   * Changes a task. First applies the time limits that have passed, so `decide` sees the present state.
   *
   * @param options whether the store may repeat the transaction; true only if `decide` may run more than once
   * @throws DeputeError TASK_NOT_FOUND, and the errors of `decide`; then nothing is stored
   */
  async change(taskId: string, decide: Decide, options?: WriteOptions): Promise<TaskRecord> {
    return this.store.write((tx) => this.changeWithin(tx, taskId, decide), options);
  }

  /** Does the work of `change` within the transaction `tx`. */
  async changeWithin(tx: WriteTx, taskId: string, decide: Decide): Promise<TaskRecord> {
    const nowMs = this.clock.now();
    const before = await this.#read(tx, taskId);
    if (before === undefined) throw taskNotFound(taskId);
    const timed = advanceByTime(before, { nowMs, random: this.random });
    const { record, events } = await decide(timed.record, nowMs, tx);
    await this.#write(tx, before, { record, events: [...timed.events, ...events] });
    return record;
  }

  /**
   * Sets the time from which workers may take a pending task. Does not change tasks in other states.
   *
   * @param atMs epoch milliseconds
   */
  async availableFrom(tx: WriteTx, taskId: string, atMs: number): Promise<void> {
    const record = await this.#read(tx, taskId);
    if (record?.task.status !== TaskStatus.PENDING) return;
    const after = { ...record, queuedMs: atMs };
    await updateQueued(tx, after);
    this.noteWritten(tx, after);
    this.announce(tx, after);
  }

  /** In one transaction, applies to these tasks all time limits that have passed. */
  async applyTime(taskIds: readonly string[]): Promise<void> {
    await this.store.write(async (tx) => {
      for (const taskId of taskIds) {
        await this.changeWithin(tx, taskId, (record) => ({ record, events: [] }));
      }
    });
  }

  /** Publishes a wake-up under a topic and a key. */
  wake(topic: string, key: string): void {
    this.#bus.publish(topic, key);
  }

  /**
   * Wakes an agent's workers after a change of the number of tasks that they may hold. Call this method in the
   * transaction that makes the change.
   */
  limitsChanged(tx: WriteTx, agentId: string): void {
    tx.afterRun(() => this.#work.onLimits(agentId));
    tx.afterCommit(() => this.#publishWork(agentId, "limits"));
  }

  /** Caches the record of a task that a transaction has written. Call this method before other code reads the task. */
  noteWritten(tx: WriteTx, record: TaskRecord): void {
    this.#records.store(tx, record);
  }

  /**
   * Wakes the task's watchers after the commit. If no worker holds the task, also wakes the agent's workers, because a
   * task is pending or capacity is free. Call this method once in each transaction that changes a task.
   */
  announce(tx: WriteTx, record: TaskRecord): void {
    const deadline = nextDeadline(record);
    if (record.hold === undefined) tx.afterRun(() => this.#tellOfWork(record));
    tx.afterCommit(() => {
      this.#bus.publish(TASK_TOPIC, record.task.id);
      this.#bus.publish(DELEGATOR_TOPIC, record.task.delegator);
      if (isTerminal(record.task.status)) this.ends.notify(record);
      // A pending task is work for the agent's workers. A released task gives a worker free capacity. Both cases wake
      // the agent's workers.
      const isPending = record.task.status === TaskStatus.PENDING;
      if (record.hold === undefined) this.#publishWork(record.task.agentId, isPending ? "work" : "room");
      if (isPending) this.#wakeLater(record);
      if (deadline !== undefined) this.#deadlines?.notice(deadline.atMs);
    });
  }

  /** Wakes the agent's polling workers, and the dispatchers of other replicas. */
  #publishWork(agentId: string, kind: DispatchKind): void {
    this.#bus.publish(ASSIGNMENT_TOPIC, agentId);
    const { replica } = this;
    if (this.isShared) this.#bus.publish(DISPATCH_TOPIC, toNewsKey({ replica, kind, agentId }));
  }

  /**
   * Returns the cached record of a task; undefined for none. In a service with replicas, always undefined, because
   * another replica may have changed the task.
   */
  #newest(taskId: string): TaskRecord | undefined {
    return this.isShared ? undefined : this.#records.get(taskId);
  }

  #tellOfWork({ task, queuedMs, epoch }: TaskRecord): void {
    const mayBeTaken = task.status === TaskStatus.PENDING && queuedMs <= this.clock.now();
    if (mayBeTaken) this.#work.onWaiting(task.agentId);
    // The release of a task frees capacity only if a worker has held the task.
    if (epoch > 0) this.#work.onRoom(task.agentId);
  }

  async #read(tx: WriteTx, taskId: string): Promise<TaskRecord | undefined> {
    return this.#records.get(taskId) ?? (await readTask(tx, taskId));
  }

  async #endChildren(tx: WriteTx, { task }: TaskRecord, childIds: readonly string[]): Promise<void> {
    const reason = `the parent task is ${statusName(task.status)}`;
    for (const childId of childIds) {
      await this.changeWithin(tx, childId, (child, nowMs) => cancelIfOpen(child, reason, nowMs, "parent"));
    }
  }

  /**
   * Wakes workers when a task's backoff ends. Beyond MAX_LATER pending wake-ups, workers find such tasks by polling.
   */
  #wakeLater({ task, queuedMs }: TaskRecord): void {
    const waitMs = queuedMs - this.clock.now();
    if (waitMs <= 0 || this.#later.size >= MAX_LATER) return;
    const cancel = this.#timers.after(waitMs, () => {
      this.#later.delete(cancel);
      this.#work.onWaiting(task.agentId);
      this.#publishWork(task.agentId, "work");
    });
    this.#later.add(cancel);
  }

  async #write(tx: WriteTx, before: TaskRecord, { record, events }: Advance): Promise<void> {
    if (events.length === 0) {
      if (record === before) return;
      await updateLease(tx, record);
      this.noteWritten(tx, record);
      return;
    }
    // The statements are sent together, so that they cost one round trip of the database.
    const updating = updateTask(tx, before, record);
    updating.catch(() => {});
    this.noteWritten(tx, record);
    await insertEvents(tx, events);
    const isLetGo = before.hold !== undefined && record.hold === undefined;
    if (isLetGo && !hasOnlyBegun(before)) await deleteReports(tx, record.task.id);
    const hasEnded = isTerminal(record.task.status);
    if (hasEnded) {
      const finding = openChildren(tx, record.task.id);
      finding.catch(() => {});
      await removeOpenTask(tx, record.task);
      if (record.task.delegationId !== "") {
        await deleteBlocks(tx, record.task.id);
        if (await endDelegation(tx, record.task)) tx.afterCommit(() => this.#onDelegationEnd());
      }
      await deleteWorkState(tx, before);
      await this.#endChildren(tx, record, await finding);
    }
    if (!(await updating)) {
      throw new Error(`task ${record.task.id} changed within the transaction that changes it`);
    }
    if (record.task.spend !== undefined) {
      // Settles the attempt's usage when the task leaves its worker. Settles it also when a task ends without a worker,
      // because the delegate may have attested usage.
      if (isLetGo || hasEnded) await settleAttempt(tx, record.task);
      if (hasEnded) await settleTask(tx, record.task);
    }
    await this.notify(tx, { before, after: record, events });
    this.announce(tx, record);
  }
}
