import type { CallOptions, Client, HandlerContext } from "@connectrpc/connect";
import type { TaskCompleted, TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { TaskFailure, TaskOutput } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { Assignment, WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import type { Target } from "./creation/admission.ts";
import type { Admitted, Created } from "./creation/create-task.ts";
import type { MoreOfWork } from "./creation/delegation-policy.ts";
import type { MissingContextRule, PurgeListener, ResultCheck, TaskObserver } from "./hooks.ts";
import type { WorkerStream } from "./queue/claim.ts";
import type { Decision, ResultReviews } from "./reviews-port.ts";
import type { TaskRecord } from "./rules/record.ts";
import type { Viewer } from "./rules/visibility.ts";
import type { Cursor } from "./store/cursor-rows.ts";

/**
 * What modules may ask of the task engine, and what it tells them. An operation with a `tx` is part of the caller's transaction:
 * it applies the time limits that have passed first, writes event and state together, tells the observers, and wakes waiting
 * calls after the commit. Unknown ids are refused with TASK_NOT_FOUND, impossible transitions with TASK_STATE_CONFLICT.
 */
export interface TaskEngine {
  /** The store of the tasks, where modules have tables of their own. */
  readonly store: TaskStore;

  /** Adds an observer of every change of every task; an observer that throws undoes the change. */
  observe(observer: TaskObserver): void;
  /** Adds a check of results, run before a worker's result is taken. */
  checkResults(check: ResultCheck): void;
  /** Adds a listener to the purge of a task, so that rows of the task go with it. */
  onPurge(listener: PurgeListener): void;
  /** Names the tasks that may be dispatched although a context that they carry is gone. */
  allowMissingContexts(allows: MissingContextRule): void;
  /** Registers the module that decides on held results. */
  provideReviews(reviews: ResultReviews): void;
  /** The decisions on held results. */
  readonly reviews: ResultReviews;

  /** A task's record as the transaction sees it; undefined where there is none. */
  find(tx: ReadTx, taskId: string): Promise<TaskRecord | undefined>;
  /** Whether a child task has not ended. */
  hasOpenChildren(tx: ReadTx, taskId: string): Promise<boolean>;
  /** The result that waits for the overseer; undefined where none does. */
  heldResult(tx: ReadTx, taskId: string): Promise<TaskCompleted | undefined>;
  /**
   * The events of a task after a sequence: those recorded, then live ones, to the terminal one. Nothing where there is no task.
   *
   * @throws DeputeError INVALID_REQUEST for a sequence beyond the newest event, EVENTS_PURGED for one before what is kept
   */
  watch(
    taskId: string,
    afterSequence: bigint,
    context: Pick<HandlerContext, "signal">,
  ): AsyncGenerator<TaskEvent, void, undefined>;

  /**
   * Refuses a delegation that the manifest of the delegator's agent does not allow.
   *
   * @throws DeputeError CALLER_NOT_ALLOWED, DEPENDENCY_UNAVAILABLE
   */
  requireAllowed(
    delegator: string,
    agentId: string,
    description: string,
    options: CallOptions,
  ): Promise<void>;
  /**
   * Checks a draft before its transaction: delegate, overseer, policy, contract, schema and token.
   *
   * @throws DeputeError AGENT_NOT_FOUND, CALLER_NOT_ALLOWED, INPUT_SCHEMA_VIOLATION, TOKEN_DENIED, INVALID_REQUEST,
   * DEPENDENCY_UNAVAILABLE
   */
  admit(candidate: Candidate, options: CallOptions): Promise<Admitted>;
  /**
   * Creates a task, once for each request id of a delegator.
   *
   * @throws DeputeError REQUEST_ID_REUSED, TASK_ID_TAKEN; for a child TASK_NOT_FOUND, TASK_STATE_CONFLICT, TASK_CYCLE,
   * LIMIT_EXCEEDED, BUDGET_EXCEEDED
   */
  create(tx: WriteTx, creation: Creation): Promise<Created>;
  /** Keeps a pending task out of dispatch until a time, epoch milliseconds; leaves a task in another state as it is. */
  delay(tx: WriteTx, taskId: string, untilMs: number): Promise<void>;
  /**
   * Cancels a task for its delegator.
   *
   * @throws DeputeError TASK_STATE_CONFLICT for a task that has ended, unless `ifOpen` leaves such a task as it is
   */
  cancel(tx: WriteTx, taskId: string, reason: string, options?: { readonly ifOpen: boolean }): Promise<void>;

  /** Starts a pending task for a named worker, or extends the lease of that worker; leaves the task of another as it is. */
  hold(tx: WriteTx, taskId: string, worker: NamedWorker): Promise<void>;
  /** Extends the leases of a named worker that end before a time, epoch milliseconds; a hundred leases at most. */
  keepAlive(holder: string, beforeMs: number): Promise<void>;
  /**
   * Completes a task that a named worker holds; a pending task is started first. The result is held for the overseer where the
   * delegate has one.
   *
   * @returns false, with nothing changed, when the task has ended or its state does not let this worker complete it
   */
  complete(tx: WriteTx, taskId: string, completion: Completion): Promise<boolean>;
  /** Fails the present attempt of a task; the retry policy decides whether another attempt follows. */
  failAttempt(tx: WriteTx, taskId: string, worker: NamedWorker, failure: TaskFailure): Promise<TaskRecord>;
  /** Suspends a running task whose delegator has asked for it. Its attempt does not count. */
  suspend(tx: WriteTx, taskId: string): Promise<void>;
  /**
   * Applies a decision to the result that a task holds; does nothing where no result is held.
   *
   * @param isOwn whether the caller tells the parties of the decision itself
   */
  decide(tx: WriteTx, taskId: string, decision: Decision, isOwn: boolean): Promise<void>;

  /** The queue, for workers that are part of this process. */
  readonly workers: WorkerQueue;
  /** How far this store has followed a log of another service. */
  cursor(name: string): Cursor;
}

/** The transactions of the store of the tasks. */
export type TaskStore = Pick<Store, "read" | "write">;

/** What workers in this process ask of the queue. */
export interface WorkerQueue {
  /** The calls of workers, made in the name of the platform. */
  readonly calls: Client<typeof WorkerService>;
  /** Up to `limit` agents after this one, by id, with a task that may be dispatched. */
  agentsWithWork(afterAgentId: string, limit: number): Promise<string[]>;
  /** Dispatches up to `limit` pending tasks of the worker's agent: by priority, then oldest first. */
  take(worker: WorkerStream, limit: number): Promise<Assignment[]>;
  /** The assignments of a holder. */
  heldBy(holder: string): Promise<Assignment[]>;
}

/** A draft that is about to become a task. */
export interface Candidate {
  readonly draft: TaskDraft;
  /** The delegator's principal; it has to see the delegate. */
  readonly delegator: string;
  /** The delegate, where the caller has found it; absent for the one that the draft names. */
  readonly target?: Target;
  /** What policies may ask of the work and the draft does not tell. */
  readonly work?: MoreOfWork;
}

/** A task to be created. */
export interface Creation {
  readonly draft: TaskDraft;
  readonly admitted: Admitted;
  readonly delegator: string;
  readonly requestId: string;
  /** The caller, which has to be delegator or delegate of the parent. */
  readonly viewer: Viewer;
  /** What a repeated request has to ask for; the draft itself when absent. */
  readonly sameAs?: TaskDraft;
  /** Whether an external id that is taken is refused even where the task is the same. */
  readonly isExclusive?: boolean;
  /** The task that gives up its external id to the new one; it has ended. */
  readonly replaces?: string;
}

/** A worker that has no stream: a module that carries out work by other means. */
export interface NamedWorker {
  /** Names the lease; no stream and no other worker has this name. */
  readonly holder: string;
  /** The name that events give. */
  readonly worker: string;
}

/** A result that a named worker delivers. */
export interface Completion {
  readonly worker: NamedWorker;
  readonly output: TaskOutput;
  /** True accepts the result while another worker of the same agent holds the lease. */
  readonly fromAnyWorker?: boolean;
  /** True completes the task at once, although its agent has an overseer. */
  readonly isUnreviewed?: boolean;
}
