import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { Logger } from "@depute/service";
import { CheckNotRun, type CheckResult } from "../rules/check-result.ts";
import type { TaskContract, VerificationSpec } from "../rules/documents.ts";
import {
  type JudgeReply,
  type JudgeSpec,
  judgePrompt,
  judgeSpecOf,
  parseReply,
  SPREAD_WARNING,
  spreadOf,
  verdictOf,
} from "../rules/judge.ts";
import type { JudgeEndpoint } from "./config.ts";
import { askModel, ceilingOf } from "./model-request.ts";

export interface JudgeOptions {
  readonly judges: ReadonlyMap<string, JudgeEndpoint>;
  /** Timeout in milliseconds for the answer to one question. */
  readonly timeoutMs: number;
  /** Maximum number of concurrent questions. */
  readonly maxOpen: number;
  /** Maximum number of queued questions. */
  readonly maxWaiting: number;
  readonly timers: Timers;
  readonly log: Logger;
}

export interface JudgeOutcome {
  /** The result of the verification; if undefined, `problem` is the reason. */
  result: CheckResult | undefined;
  problem: string;
  /** Cost in microcents. A run without a result may have a cost too. */
  cost: number;
}

/** A prepared judge run: the questions to one model about one output. Reserve `ceiling` before you call `ask`. */
export interface JudgeRun {
  /** Maximum cost in microcents. */
  readonly ceiling: number;
  /** Maximum time from the call of `ask` to its outcome, in milliseconds. */
  readonly limitMs: number;
  /** Sends the questions. If the queue is full, throws DeputeError LIMIT_EXCEEDED before the first question. */
  readonly ask: (signal: AbortSignal) => Promise<JudgeOutcome>;
}

/** Sends outputs to models, which score them (DelegateOS 6.5). */
export class Judge {
  readonly #options: JudgeOptions;
  readonly #waiting: (() => void)[] = [];
  /** The judge runs in progress, by key. */
  readonly #running = new Map<string, Promise<JudgeOutcome>>();
  #open = 0;

  constructor(options: JudgeOptions) {
    this.#options = options;
  }

  /** Whether an endpoint for the model is configured. */
  has(model: string): boolean {
    return this.#options.judges.has(model);
  }

  /**
   * Prepares the judge run of an output.
   *
   * @param output JSON of the output
   * @throws CheckNotRun if no endpoint for the model is configured, or if the settings in `spec` are invalid
   */
  prepare(contract: TaskContract, spec: VerificationSpec, output: string): JudgeRun {
    const judgeSpec = judgeSpecOf(spec);
    const endpoint = this.#options.judges.get(judgeSpec.model);
    if (endpoint === undefined)
      throw new CheckNotRun(`no judge with the model ${judgeSpec.model} is configured`);
    const prompt = judgePrompt(contract, output, judgeSpec.rubric);
    return {
      ceiling: Math.min(Number.MAX_SAFE_INTEGER, judgeSpec.evaluations * ceilingOf(endpoint, prompt)),
      // In the worst case, a question must wait until all questions before it in the queue have timed out.
      limitMs: this.#options.timeoutMs * (1 + Math.ceil(this.#options.maxWaiting / this.#options.maxOpen)),
      ask: (signal) => this.#judge(contract.id, judgeSpec, endpoint, prompt, signal),
    };
  }

  /** Runs a judge. If a run with the same key is in progress, returns the outcome of that run, with its cost. */
  once(key: string, run: () => Promise<JudgeOutcome>): Promise<JudgeOutcome> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const outcome = run().finally(() => this.#running.delete(key));
    this.#running.set(key, outcome);
    return outcome;
  }

  async #judge(
    contractId: string,
    judgeSpec: JudgeSpec,
    endpoint: JudgeEndpoint,
    prompt: string,
    signal: AbortSignal,
  ): Promise<JudgeOutcome> {
    this.#assertRoom(judgeSpec.evaluations);
    const question = { model: judgeSpec.model, temperature: judgeSpec.temperature, prompt };
    // The evaluations do not depend on each other, so their questions are sent concurrently, up to `maxOpen`.
    const answers = await Promise.all(
      Array.from({ length: judgeSpec.evaluations }, () => this.#ask(endpoint, question, signal)),
    );
    const cost = answers.reduce((sum, answer) => sum + answer.cost, 0);
    const replies = answers.map(({ text }) => (text === undefined ? undefined : parseReply(text)));
    const usable = replies.filter((reply): reply is JudgeReply => reply !== undefined);
    if (usable.length < judgeSpec.evaluations) {
      const problem =
        answers.find((answer) => answer.problem !== undefined)?.problem ?? "an answer without a score";
      this.#options.log.warn(
        { contract: contractId, model: judgeSpec.model, problem },
        "a model did not score an output",
      );
      return { result: undefined, problem, cost };
    }
    const spread = spreadOf(usable);
    if (spread > SPREAD_WARNING) {
      this.#options.log.warn(
        { contract: contractId, model: judgeSpec.model, spread },
        "the scores of a model for one output differ",
      );
    }
    return { result: verdictOf(usable, judgeSpec), problem: "", cost };
  }

  /**
   * Refuses a run if the queue has no room for all its questions. Call this method before the first question is sent,
   * because each question has a cost.
   */
  #assertRoom(questions: number): void {
    const { maxOpen, maxWaiting } = this.#options;
    if (this.#open + this.#waiting.length + questions <= maxOpen + maxWaiting) return;
    throw new DeputeError(
      ErrorReason.LIMIT_EXCEEDED,
      "the queue of questions to models is full; try again later",
      {
        metadata: { limit: "waiting_judges", max: String(maxWaiting) },
      },
    );
  }

  async #ask(endpoint: JudgeEndpoint, question: Parameters<typeof askModel>[1], signal: AbortSignal) {
    const { maxOpen, timeoutMs, timers } = this.#options;
    if (this.#open >= maxOpen) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#open += 1;
    const limit = new AbortController();
    const cancel = timers.after(timeoutMs, () => limit.abort());
    try {
      if (signal.aborted) return { text: undefined, cost: 0, problem: "the call ended" };
      // The provider charges for a question that was sent. So this process waits for the answer even if the caller has
      // ended the call.
      return await askModel(endpoint, question, limit.signal);
    } finally {
      cancel();
      this.#open -= 1;
      this.#waiting.shift()?.();
    }
  }
}
