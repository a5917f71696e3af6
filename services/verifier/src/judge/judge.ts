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
import { askModel, ceilingOf } from "./ask.ts";
import type { JudgeEndpoint } from "./config.ts";

export interface JudgeOptions {
  readonly judges: ReadonlyMap<string, JudgeEndpoint>;
  /** Milliseconds for one answer of a model. */
  readonly timeoutMs: number;
  /** Questions that are open at once. */
  readonly maxOpen: number;
  /** Questions that may wait. */
  readonly maxWaiting: number;
  readonly timers: Timers;
  readonly log: Logger;
}

export interface Judged {
  /** Undefined when the judging was not carried out; `problem` then says why. */
  result: CheckResult | undefined;
  problem: string;
  /** Microcents, also when there is no result. */
  cost: number;
}

/** A judging that waits to be paid for. */
export interface Judging {
  /** The most that it costs, in microcents. */
  readonly ceiling: number;
  /** The most time that it takes, in milliseconds. */
  readonly limitMs: number;
  /** Asks. Throws DeputeError LIMIT_EXCEEDED, and then nothing was asked. */
  readonly ask: (signal: AbortSignal) => Promise<Judged>;
}

/** Asks models what an output is worth (DelegateOS 6.5). */
export class Judge {
  readonly #options: JudgeOptions;
  readonly #waiting: (() => void)[] = [];
  /** Judgings that are on their way. */
  readonly #running = new Map<string, Promise<Judged>>();
  #open = 0;

  constructor(options: JudgeOptions) {
    this.#options = options;
  }

  /** Whether an endpoint for a model is configured. */
  has(model: string): boolean {
    return this.#options.judges.has(model);
  }

  /**
   * What judging an output would ask.
   *
   * @param output JSON of the output
   * @throws CheckNotRun for a model without endpoint
   */
  prepare(contract: TaskContract, spec: VerificationSpec, output: string): Judging {
    const wanted = judgeSpecOf(spec);
    const endpoint = this.#options.judges.get(wanted.model);
    if (endpoint === undefined) throw new CheckNotRun(`no judge of the model ${wanted.model} is configured`);
    const prompt = judgePrompt(contract, output, wanted.rubric);
    return {
      ceiling: Math.min(Number.MAX_SAFE_INTEGER, wanted.evaluations * ceilingOf(endpoint, prompt)),
      // Each has to wait for as many turns as there are questions, at worst.
      limitMs: this.#options.timeoutMs * (1 + Math.ceil(this.#options.maxWaiting / this.#options.maxOpen)),
      ask: (signal) => this.#judge(contract.id, wanted, endpoint, prompt, signal),
    };
  }

  /** Whoever asks for a judging that is on its way waits for it: it is asked, and paid, once. */
  once(key: string, run: () => Promise<Judged>): Promise<Judged> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const judged = run().finally(() => this.#running.delete(key));
    this.#running.set(key, judged);
    return judged;
  }

  async #judge(
    contractId: string,
    wanted: JudgeSpec,
    endpoint: JudgeEndpoint,
    prompt: string,
    signal: AbortSignal,
  ): Promise<Judged> {
    this.#assertRoom(wanted.evaluations);
    const question = { model: wanted.model, temperature: wanted.temperature, prompt };
    // Independent of one another, so all at once as far as there is room.
    const answers = await Promise.all(
      Array.from({ length: wanted.evaluations }, () => this.#ask(endpoint, question, signal)),
    );
    const cost = answers.reduce((sum, answer) => sum + answer.cost, 0);
    const replies = answers.map(({ text }) => (text === undefined ? undefined : parseReply(text)));
    const usable = replies.filter((reply): reply is JudgeReply => reply !== undefined);
    if (usable.length < wanted.evaluations) {
      const problem =
        answers.find((answer) => answer.problem !== undefined)?.problem ?? "an answer that is no score";
      this.#options.log.warn(
        { contract: contractId, model: wanted.model, problem },
        "a judge did not answer",
      );
      return { result: undefined, problem, cost };
    }
    const spread = spreadOf(usable);
    if (spread > SPREAD_WARNING) {
      this.#options.log.warn({ contract: contractId, model: wanted.model, spread }, "the judges differ");
    }
    return { result: verdictOf(usable, wanted), problem: "", cost };
  }

  /** Nothing is asked, and nothing costs, unless all questions have room. */
  #assertRoom(questions: number): void {
    const { maxOpen, maxWaiting } = this.#options;
    if (this.#open + this.#waiting.length + questions <= maxOpen + maxWaiting) return;
    throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "too many questions to judges wait", {
      metadata: { limit: "waiting_judges", max: String(maxWaiting) },
    });
  }

  async #ask(endpoint: JudgeEndpoint, question: Parameters<typeof askModel>[1], signal: AbortSignal) {
    const { maxOpen, timeoutMs, timers } = this.#options;
    if (this.#open >= maxOpen) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#open += 1;
    const limit = new AbortController();
    const cancel = timers.after(timeoutMs, () => limit.abort());
    try {
      if (signal.aborted) return { text: undefined, cost: 0, problem: "the caller is gone" };
      // A question that was sent is paid for, so a caller who leaves does not end it.
      return await askModel(endpoint, question, limit.signal);
    } finally {
      cancel();
      this.#open -= 1;
      this.#waiting.shift()?.();
    }
  }
}
