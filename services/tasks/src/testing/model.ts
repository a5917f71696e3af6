import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";

const { PENDING, ACCEPTED, RUNNING, SUSPENDED, INPUT_REQUIRED, IN_REVIEW } = TaskStatus;
const { COMPLETED, REJECTED, FAILED, CANCELLED, EXPIRED } = TaskStatus;

/** The limits of the model's tasks, milliseconds. */
export const MODEL_LIMITS = { total: 60_000, queue: 20_000, attempt: 15_000, heartbeat: 5000 };
export const MODEL_ATTEMPTS = 2;

/** What a worker's call has to answer. */
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

/** What a delegator does to a task that is there. */
export type DelegatorCall =
  | "cancel"
  | "interrupt"
  | "resume"
  | "answer"
  // An overseer's, but for that.
  | "approve"
  | "send back"
  | "turn down";

/** How large the model's trees grow. */
export const MODEL_TREE = { maxDepth: 2, maxChildren: 2, maxOpen: 4 };

/**
 * A task as it should behave, written from the description of the life cycle alone: one variable for each thing that
 * matters, no events, no tables.
 */
export class ModelTask {
  status: TaskStatus = PENDING;
  /** The statuses of the log's events. */
  readonly log: TaskStatus[] = [PENDING];
  epoch = 0;
  attempt = 0;
  readonly #endsMs: number;
  #waitsUntilMs: number;
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
    if (parent !== undefined) parent.#children.push(this);
    this.#waitsUntilMs = nowMs + MODEL_LIMITS.queue;
  }

  get mustEndMs(): number {
    return this.#endsMs;
  }

  /** Why it can have no further part; "ok" when it can. */
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

  get held(): boolean {
    return this.status === ACCEPTED || this.status === RUNNING || this.status === INPUT_REQUIRED;
  }

  /** Whether the worker is to let go. */
  get interrupted(): boolean {
    return this.#interrupted;
  }

  passTime(nowMs: number): void {
    // What its own time ended was not ended by the whole.
    for (const child of this.#children) child.passTime(nowMs);
    while (!this.over) {
      const next = Math.min(this.#endsMs, this.#patienceEndsMs());
      if (next > nowMs) return;
      if (!this.held || this.#endsMs <= next) this.#become(EXPIRED);
      else this.#loseAttempt(nowMs);
    }
  }

  /** When whoever the task waits for has taken too long. */
  #patienceEndsMs(): number {
    if (this.status === PENDING) return this.#waitsUntilMs;
    if (this.status === INPUT_REQUIRED) return this.#leaseUntilMs;
    return this.held ? Math.min(this.#leaseUntilMs, this.#attemptUntilMs) : Number.POSITIVE_INFINITY;
  }

  claim(nowMs: number): void {
    this.epoch++;
    this.attempt++;
    this.#leaseUntilMs = nowMs + MODEL_LIMITS.heartbeat;
    this.#attemptUntilMs = nowMs + MODEL_LIMITS.attempt;
    this.#become(ACCEPTED);
  }

  delegate(call: DelegatorCall, nowMs: number): string {
    const { status } = this;
    switch (call) {
      case "cancel":
        if (!this.over) this.#become(CANCELLED);
        return this.status === CANCELLED ? "ok" : "TASK_NOT_CANCELLABLE";
      case "interrupt":
        if (status === SUSPENDED || this.#interrupted) return "ok";
        if (status !== RUNNING && status !== INPUT_REQUIRED) return "TASK_STATE_CONFLICT";
        this.#become(status);
        this.#interrupted = true;
        return "ok";
      case "resume":
        if (status !== SUSPENDED) return "TASK_NOT_RESUMABLE";
        this.#waitsUntilMs = nowMs + MODEL_LIMITS.queue;
        this.#become(PENDING);
        return "ok";
      case "approve":
      case "send back":
      case "turn down":
        if (!this.#isReviewed) return "CALLER_NOT_ALLOWED";
        if (status !== IN_REVIEW) return "TASK_STATE_CONFLICT";
        if (call === "approve") this.#become(COMPLETED);
        if (call === "turn down") this.#become(FAILED);
        if (call === "send back") {
          this.attempt--;
          this.#waitsUntilMs = nowMs + MODEL_LIMITS.queue;
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

  call(call: WorkerCall, epoch: number, nowMs: number): Outcome {
    if (this.#settled === `${call === "break" ? "fail" : call} ${epoch}`) return "ok";
    if (call === "heartbeat" && this.over && epoch === this.epoch) return "ok";
    if (epoch !== this.epoch || !this.held) return "LEASE_LOST";
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
        if (this.status === ACCEPTED) return "TASK_STATE_CONFLICT";
        this.attempt--;
        this.#settle("suspend", SUSPENDED);
        return "ok";
      case "reject":
        if (this.status !== ACCEPTED) return "TASK_STATE_CONFLICT";
        this.#settle("reject", REJECTED);
        return "ok";
      case "break":
        this.#settle("fail", FAILED);
        return "ok";
      case "fail":
        this.#settled = `fail ${epoch}`;
        this.#loseAttempt(nowMs);
        return "ok";
      case "release":
        this.attempt--;
        this.#waitsUntilMs = nowMs + MODEL_LIMITS.queue;
        this.#settle("release", this.#interrupted ? SUSPENDED : PENDING);
        return "ok";
    }
  }

  #loseAttempt(nowMs: number): void {
    this.#waitsUntilMs = nowMs + MODEL_LIMITS.queue;
    const again = this.#interrupted ? SUSPENDED : PENDING;
    this.#become(this.attempt < MODEL_ATTEMPTS ? again : FAILED);
  }

  #settle(call: string, status: TaskStatus): void {
    this.#settled = `${call} ${this.epoch}`;
    this.#become(status);
  }

  #become(status: TaskStatus): void {
    this.status = status;
    this.log.push(status);
    if (!this.held) this.#interrupted = false;
    if (this.over) for (const child of this.#children) if (!child.over) child.#become(CANCELLED);
  }
}
