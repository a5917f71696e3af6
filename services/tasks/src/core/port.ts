import type { CallOptions, Client, HandlerContext } from "@connectrpc/connect";
import type { TaskCompleted, TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { Task, TaskFailure, TaskOutput } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraft } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { Assignment, WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { WorkLease } from "@depute/service";
import type { ReadTx, Store, WriteTx } from "@depute/store";
import type { MoreOfWork, Target } from "./creation/admission.ts";
import type { Admitted, Created } from "./creation/create-task.ts";
import type {
  EraseListener,
  MissingContextRule,
  PurgeListener,
  ResultCheck,
  TaskEventName,
  TaskObserver,
} from "./hooks.ts";
import type { WorkerStream } from "./queue/claim.ts";
import type { Decision, ResultReviews } from "./reviews-port.ts";
import type { TaskRecord } from "./rules/record.ts";
import type { Viewer } from "./rules/visibility.ts";
import type { Cursor } from "./store/cursor-rows.ts";

/**
 * The calls that modules may make to the task engine. An operation with a `tx` runs in that transaction. The operation
 * applies the time limits that have passed, writes the event and the new state, then runs the observers. Waiting calls
 * wake up after the commit. Operations throw TASK_NOT_FOUND for an unknown id and TASK_STATE_CONFLICT for an impossible
 * transition.
 */
export interface TaskEngine {
  /** The store of the tasks, in which modules may have tables. */
  readonly store: TaskStore;

  /**
   * Registers an observer of task changes. An observer that throws rolls the change back.
   *
   * @param events the observer runs only for changes with one of these events; if absent, for every change
   */
  observe(observer: TaskObserver, events?: ReadonlySet<TaskEventName>): void;
  /** Adds a check that runs before the engine accepts a worker's result. */
  checkResults(check: ResultCheck): void;
  /** Adds a listener to the purge of a task, so that a module can delete its rows of the task. */
  onPurge(listener: PurgeListener): void;
  /** Adds a listener to the erasure of an organization, so that a module can delete its records of the organization. */
  onErase(listener: EraseListener): void;
  /** Sets the rule that decides whether the queue may dispatch a task that has lost one of its contexts. */
  allowMissingContexts(allows: MissingContextRule): void;
  /** Registers the module that decides on held results. */
  provideReviews(reviews: ResultReviews): void;
  /** The operations on reviews of held results, which the registered module provides. */
  readonly reviews: ResultReviews;

  /** Returns a task's record as the transaction sees it; undefined if the task does not exist. */
  find(tx: ReadTx, taskId: string): Promise<TaskRecord | undefined>;
  /** Returns a task with its input and result, for a module that already has the task's record. */
  wholeTask(tx: ReadTx, record: TaskRecord): Promise<Task>;
  /** Returns up to `limit` stored events of a task after a sequence, in order. */
  events(tx: ReadTx, taskId: string, afterSequence: bigint, limit: number): Promise<TaskEvent[]>;
  /** Whether the task has a child task that has not ended. */
  hasOpenChildren(tx: ReadTx, taskId: string): Promise<boolean>;
  /** Returns the result that waits for the overseer; undefined if no result waits. */
  heldResult(tx: ReadTx, taskId: string): Promise<TaskCompleted | undefined>;
  /**
   * Returns the events of a task after a sequence: first the stored events, then live events, up to the
   * terminal event. Empty for an unknown task.
   *
   * @throws DeputeError INVALID_REQUEST for a sequence beyond the newest event, EVENTS_PURGED for a sequence
   * before the oldest stored event
   */
  watch(
    taskId: string,
    afterSequence: bigint,
    context: Pick<HandlerContext, "signal">,
  ): AsyncGenerator<TaskEvent, void, undefined>;

  /**
   * Requires that the manifest of the delegator's agent allows a delegation.
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
   * CHECK_TIMEOUT, DEPENDENCY_UNAVAILABLE; without `target` also CAPABILITY_NOT_FOUND, CAPABILITY_AMBIGUOUS,
   * VERSION_MISMATCH, CONTRACT_NOT_FOUND
   */
  admit(candidate: Candidate, options: CallOptions): Promise<Admitted>;
  /**
   * Creates a task, once for each request id of a delegator.
   *
   * @throws DeputeError REQUEST_ID_REUSED, TASK_ID_TAKEN, LIMIT_EXCEEDED; for a child also TASK_NOT_FOUND,
   * TASK_STATE_CONFLICT, TASK_CYCLE, BUDGET_EXCEEDED; for a draft with contexts also INVALID_REQUEST,
   * CONTEXT_NOT_FOUND, CONTEXT_EXPIRED, CONTEXT_PERMISSION_DENIED, CONTEXT_ID_TAKEN, DEPENDENCY_UNAVAILABLE
   */
  create(tx: WriteTx, creation: Creation): Promise<Created>;
  /**
   * Delays the dispatch of a pending task until a time in epoch milliseconds. Does not change tasks in other states.
   */
  delay(tx: WriteTx, taskId: string, untilMs: number): Promise<void>;
  /**
   * Cancels a task for its delegator.
   *
   * @throws DeputeError TASK_STATE_CONFLICT for an ended task, unless `ifOpen` is set
   */
  cancel(tx: WriteTx, taskId: string, reason: string, options?: { readonly ifOpen: boolean }): Promise<void>;

  /**
   * Starts a pending task for a named worker, or extends that worker's lease. Does not change a task of another worker.
   */
  hold(tx: WriteTx, taskId: string, worker: NamedWorker): Promise<void>;
  /**
   * Extends the leases of a named worker that end before `beforeMs`, in epoch milliseconds. One call extends at most
   * 100 leases.
   */
  keepAlive(holder: string, beforeMs: number): Promise<void>;
  /**
   * Completes a task for a named worker; a pending task starts first. If the delegate has an overseer, the result waits
   * for the overseer.
   *
   * @returns false, without a change, if the task has ended, or if the task's state does not let this worker complete
   * the task
   */
  complete(tx: WriteTx, taskId: string, completion: Completion): Promise<boolean>;
  /**
   * Fails the present attempt of a task; a pending task starts first. The retry policy decides whether another attempt
   * follows.
   */
  failAttempt(tx: WriteTx, taskId: string, worker: NamedWorker, failure: TaskFailure): Promise<TaskRecord>;
  /**
   * Suspends a running task whose delegator has requested the suspension. The attempt does not count towards the
   * maximum of attempts.
   */
  suspend(tx: WriteTx, taskId: string): Promise<void>;
  /**
   * Applies a decision to a held result. Does nothing if the task has no held result.
   *
   * @param isOwn whether the calling module itself notifies the task's parties
   */
  decide(tx: WriteTx, taskId: string, decision: Decision, isOwn: boolean): Promise<void>;

  /** The queue, for workers in this process. */
  readonly workers: WorkerQueue;
  /** Returns the cursor with this name. It stores a position in a log of another service. */
  cursor(name: string): Cursor;
  /** Begins to compete for the lease of background work. Returns undefined if the service has no replicas. */
  lease(name: string): WorkLease | undefined;
}

/** The transactions of the task store. */
export type TaskStore = Pick<Store, "read" | "write">;

/** The queue's operations for workers in this process. */
export interface WorkerQueue {
  /** A client of WorkerService. The platform makes these calls in its own name. */
  readonly calls: Client<typeof WorkerService>;
  /**
   * Returns the ids of up to `limit` agents with a task that is ready for dispatch. The ids follow `afterAgentId`, in
   * order.
   */
  agentsWithWork(afterAgentId: string, limit: number): Promise<string[]>;
  /** Dispatches up to `limit` pending tasks of the worker's agent: by priority, then oldest first. */
  take(worker: WorkerStream, limit: number): Promise<Assignment[]>;
  /** Returns the assignments of all tasks whose leases this holder has. */
  heldBy(holder: string): Promise<Assignment[]>;
}

/** A draft for a task that a module is about to create. */
export interface Candidate {
  readonly draft: TaskDraft;
  /** The delegator's principal. The delegate must be visible to this principal. */
  readonly delegator: string;
  /** The delegate, if the module has already found it; if absent, the draft names the delegate. */
  readonly target?: Target;
  /** Facts that the predicates of manifests need and the draft does not contain. */
  readonly work?: MoreOfWork;
}

/** The facts from which the engine creates a task. */
export interface Creation {
  readonly draft: TaskDraft;
  readonly admitted: Admitted;
  readonly delegator: string;
  /** The organization that owns a task without a parent; empty for none. */
  readonly organization: string;
  readonly requestId: string;
  /** The viewer that creates the task. For a child task, it must be the delegator or the delegate of the parent. */
  readonly viewer: Viewer;
  /** The draft that the engine compares with the draft of a repeated call. If absent, the engine compares `draft`. */
  readonly sameAs?: TaskDraft;
  /** If true, the engine refuses a used external id, even if the same draft created the existing task. */
  readonly isExclusive?: boolean;
  /** The id of an ended task that releases its external id for the new task. */
  readonly replaces?: string;
}

/** A worker without a stream, because a module of this process does the work. */
export interface NamedWorker {
  /** The name of the lease's holder. No stream and no other worker has this name. */
  readonly holder: string;
  /** The worker's name in events. */
  readonly worker: string;
}

/** A result of a named worker. */
export interface Completion {
  readonly worker: NamedWorker;
  readonly output: TaskOutput;
  /** If true, the engine accepts the result although another worker of the same agent holds the lease. */
  readonly fromAnyWorker?: boolean;
  /** If true, the task completes at once, even if its agent has an overseer. */
  readonly isUnreviewed?: boolean;
}
