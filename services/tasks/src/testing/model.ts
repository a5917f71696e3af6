import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";

const { PENDING, ACCEPTED, RUNNING, SUSPENDED, INPUT_REQUIRED, IN_REVIEW } = TaskStatus;
const { COMPLETED, REJECTED, FAILED, CANCELLED, EXPIRED } = TaskStatus;

/** The limits of the model's tasks, milliseconds. */
export const MODEL_LIMITS = { total: 60_000, queue: 20_000, attempt: 15_000, heartbeat: 5000 };
export const MODEL_ATTEMPTS = 2;

/** The expected outcome of a worker's call. */
export type Outcome = "ok" | "LEASE_LOST" | "TASK_STATE_CONFLICT";

export type WorkerCall =
  | "start"
  | "progress"
  | "complete"
  | "fail"
  | "break"
  | "reject"
  | "release"
  | "heartbeat"
  | "checkpoint"
  | "suspend"
  | "ask";

/** A delegator's call on an existing task. */
export type DelegatorCall =
  | "cancel"
  | "call off"
  | "more time"
  | "less time"
  | "interrupt"
  | "resume"
  | "answer"
  // The next three entries are calls of the overseer.
  | "approve"
  | "send back"
  | "turn down";

/**
 * MODEL_GRACE is the time in milliseconds that a worker has after a cancellation. MODEL_MOVE is the number of
 * milliseconds by which a delegator moves a deadline.
 */
export const MODEL_GRACE = 3000;
export const MODEL_MOVE = 20_000;

/** The limits of the model's trees of tasks. */
export const MODEL_TREE = { maxDepth: 2, maxChildren: 2, maxOpen: 4 };

/**
 * The expected behaviour of one task, written from the description of the life cycle. The model has a plain variable
 * for each fact, without events and tables.
 */
export class ModelTask {
  status: TaskStatus = PENDING;
  /** The statuses of the log's events. */
  readonly log: TaskStatus[] = [PENDING];
  epoch = 0;
  attempt = 0;
  #endsMs: number;
  readonly #parent: ModelTask | undefined;
  #calledOffUntilMs: number | undefined;
  readonly #createdMs: number;
  #queuedMs: number;
  #queueMs: number;
  #attemptMs: number;
  #leaseUntilMs = 0;
  #attemptUntilMs = 0;
  #settled = "";
  #interrupted = false;
  #askedMs = 0;

  readonly #children: ModelTask[] = [];
  readonly #depth: number;
  readonly #root: ModelTask;
  readonly #isReviewed: boolean;

  constructor(nowMs: number, isReviewed = false, parent?: ModelTask) {
    this.#endsMs = Math.min(nowMs + MODEL_LIMITS.total, parent?.mustEndMs ?? Number.POSITIVE_INFINITY);
    this.#depth = parent === undefined ? 0 : parent.#depth + 1;
    this.#root = parent === undefined ? this : parent.#root;
    this.#isReviewed = isReviewed;
    this.#parent = parent;
    if (parent !== undefined) parent.#children.push(this);
    this.#createdMs = nowMs;
    this.#queuedMs = nowMs;
    const totalMs = this.#endsMs - nowMs;
    this.#queueMs = Math.min(MODEL_LIMITS.queue, totalMs);
    this.#attemptMs = Math.min(MODEL_LIMITS.attempt, totalMs);
  }

  get mustEndMs(): number {
    return this.#endsMs;
  }

  /** The error reason with which CreateTask must refuse a child of this task; "ok" if it must accept the child. */
  get mayGrow(): string {
    if (this.over) return "TASK_STATE_CONFLICT";
    const full =
      this.#depth >= MODEL_TREE.maxDepth ||
      this.#children.length >= MODEL_TREE.maxChildren ||
      this.#root.#openBelow() >= MODEL_TREE.maxOpen;
    return full ? "LIMIT_EXCEEDED" : "ok";
  }

  #openBelow(): number {
    return this.#children.reduce((sum, child) => sum + (child.over ? 0 : 1) + child.#openBelow(), 0);
  }

  get over(): boolean {
    return this.status > TaskStatus.IN_REVIEW;
  }

  get isHeld(): boolean {
    return this.status === ACCEPTED || this.status === RUNNING || this.status === INPUT_REQUIRED;
  }

  get calledOff(): boolean {
    return this.#calledOffUntilMs !== undefined;
  }

  /** Whether the delegator has requested the task's suspension. */
  get interrupted(): boolean {
    return this.#interrupted;
  }

  passTime(nowMs: number): void {
    // Applies the time to children first. A child whose own limit has passed then expires by that limit and not with
    // its parent.
    for (const child of this.#children) child.passTime(nowMs);
    while (!this.over) {
      const graceMs = this.#calledOffUntilMs ?? Number.POSITIVE_INFINITY;
      const next = Math.min(graceMs, this.#endsMs, this.#patienceEndsMs());
      if (next > nowMs) return;
      if (graceMs <= next) {
        this.#become(CANCELLED);
        return;
      }
      if (!this.isHeld || this.#endsMs <= next) this.#become(EXPIRED);
      else this.#loseAttempt(nowMs);
    }
  }

  /**
   * The time at which the current wait ends. A task waits for dispatch, for the worker's next heartbeat, or for
   * the end of the attempt.
   */
  #patienceEndsMs(): number {
    if (this.status === PENDING) return this.#queuedMs + this.#queueMs;
    if (this.status === INPUT_REQUIRED) return this.#leaseUntilMs;
    return this.isHeld ? Math.min(this.#leaseUntilMs, this.#attemptUntilMs) : Number.POSITIVE_INFINITY;
  }

  claim(nowMs: number): void {
    this.epoch++;
    this.attempt++;
    this.#leaseUntilMs = nowMs + MODEL_LIMITS.heartbeat;
    this.#attemptUntilMs = nowMs + this.#attemptMs;
    this.#become(ACCEPTED);
  }

  delegate(call: DelegatorCall, nowMs: number): string {
    const { status } = this;
    switch (call) {
      case "cancel":
        if (!this.over) this.#become(CANCELLED);
        return this.status === CANCELLED ? "ok" : "TASK_NOT_CANCELLABLE";
      case "call off":
        if (this.isHeld && !this.calledOff) {
          this.#become(status);
          this.#calledOffUntilMs = nowMs + MODEL_GRACE;
        } else if (!this.over && !this.isHeld) this.#become(CANCELLED);
        return !this.over || this.status === CANCELLED ? "ok" : "TASK_NOT_CANCELLABLE";
      case "more time":
      case "less time": {
        const movedMs = this.#endsMs + (call === "more time" ? MODEL_MOVE : -MODEL_MOVE);
        if (movedMs <= nowMs) return "INVALID_REQUEST";
        if (this.#parent !== undefined && movedMs > this.#parent.mustEndMs) return "INVALID_REQUEST";
        if (this.over) return "TASK_STATE_CONFLICT";
        this.#moveEnd(movedMs);
        return "ok";
      }
      case "interrupt":
        if (status === SUSPENDED || this.#interrupted) return "ok";
        if (status !== RUNNING && status !== INPUT_REQUIRED) return "TASK_STATE_CONFLICT";
        this.#become(status);
        this.#interrupted = true;
        return "ok";
      case "resume":
        if (status !== SUSPENDED) return "TASK_NOT_RESUMABLE";
        this.#queuedMs = nowMs;
        this.#become(PENDING);
        return "ok";
      case "approve":
      case "send back":
      case "turn down":
        if (status !== IN_REVIEW) return "TASK_STATE_CONFLICT";
        if (call === "approve") this.#become(COMPLETED);
        if (call === "turn down") this.#become(FAILED);
        if (call === "send back") {
          this.attempt--;
          this.#queuedMs = nowMs;
          this.#become(PENDING);
        }
        return "ok";
      case "answer":
        if (status !== INPUT_REQUIRED) return "TASK_STATE_CONFLICT";
        this.#attemptUntilMs += nowMs - this.#askedMs;
        this.#become(RUNNING);
        return "ok";
    }
  }

  /**
   * Moves the task's deadline. A queue or attempt limit equal to the old total limit becomes the new total limit. Any
   * other limit is cut to the new total limit.
   */
  #moveEnd(endsMs: number): void {
    const before = this.#endsMs - this.#createdMs;
    const after = endsMs - this.#createdMs;
    const moved = (limit: number) => (limit >= before ? after : Math.min(limit, after));
    if (this.isHeld && this.#attemptMs >= before) this.#attemptUntilMs = endsMs;
    this.#queueMs = moved(this.#queueMs);
    this.#attemptMs = moved(this.#attemptMs);
    this.#endsMs = endsMs;
    this.#become(this.status);
  }

  call(call: WorkerCall, epoch: number, nowMs: number): Outcome {
    if (this.#settled === `${call === "break" ? "fail" : call} ${epoch}`) return "ok";
    if (call === "heartbeat" && this.over && epoch === this.epoch) return "ok";
    if (epoch !== this.epoch || !this.isHeld) return "LEASE_LOST";
    const running = this.status === RUNNING;
    switch (call) {
      case "heartbeat":
        this.#leaseUntilMs = nowMs + MODEL_LIMITS.heartbeat;
        return "ok";
      case "start":
        if (this.status === ACCEPTED) this.#become(RUNNING);
        this.#leaseUntilMs = nowMs + MODEL_LIMITS.heartbeat;
        return "ok";
      case "progress":
        if (!running) return "TASK_STATE_CONFLICT";
        this.#become(RUNNING);
        this.#leaseUntilMs = nowMs + MODEL_LIMITS.heartbeat;
        return "ok";
      case "complete":
        if (!running) return "TASK_STATE_CONFLICT";
        this.#settle("complete", this.#isReviewed ? IN_REVIEW : COMPLETED);
        return "ok";
      case "checkpoint":
        if (this.status === ACCEPTED) return "TASK_STATE_CONFLICT";
        this.#become(this.status);
        this.#leaseUntilMs = nowMs + MODEL_LIMITS.heartbeat;
        return "ok";
      case "ask":
        if (this.status === ACCEPTED) return "TASK_STATE_CONFLICT";
        if (running) {
          this.#askedMs = nowMs;
          this.#become(INPUT_REQUIRED);
        }
        this.#leaseUntilMs = nowMs + MODEL_LIMITS.heartbeat;
        return "ok";
      case "suspend":
        if (this.status === ACCEPTED && !this.calledOff) return "TASK_STATE_CONFLICT";
        if (!this.calledOff) this.attempt--;
        this.#settle("suspend", this.calledOff ? CANCELLED : SUSPENDED);
        return "ok";
      case "reject":
        if (this.status !== ACCEPTED) return "TASK_STATE_CONFLICT";
        this.#settle("reject", REJECTED);
        return "ok";
      case "break":
        this.#settle("fail", this.calledOff ? CANCELLED : FAILED);
        return "ok";
      case "fail":
        this.#settled = `fail ${epoch}`;
        this.#loseAttempt(nowMs);
        return "ok";
      case "release":
        if (this.calledOff) {
          this.#settle("release", CANCELLED);
          return "ok";
        }
        this.attempt--;
        this.#queuedMs = nowMs;
        this.#settle("release", this.#interrupted ? SUSPENDED : PENDING);
        return "ok";
    }
  }

  #loseAttempt(nowMs: number): void {
    this.#queuedMs = nowMs;
    const again = this.#interrupted ? SUSPENDED : PENDING;
    if (this.calledOff) this.#become(CANCELLED);
    else this.#become(this.attempt < MODEL_ATTEMPTS ? again : FAILED);
  }

  #settle(call: string, status: TaskStatus): void {
    this.#settled = `${call} ${this.epoch}`;
    this.#become(status);
  }

  #become(status: TaskStatus): void {
    this.status = status;
    this.log.push(status);
    if (!this.isHeld) {
      this.#interrupted = false;
      this.#calledOffUntilMs = undefined;
    }
    if (this.over) for (const child of this.#children) if (!child.over) child.#become(CANCELLED);
  }
}
