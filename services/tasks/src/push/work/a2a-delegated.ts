import { create, type JsonValue } from "@bufbuild/protobuf";
import type { QuestionKind, WorkContext } from "@depute/client";
import { WorkFailure, type WorkResult, WorkSuspension } from "@depute/client";
import type { Assignment, Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { type Message, type StreamResponse, StreamResponseSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { pause } from "@depute/core";
import { limitsMs } from "../../core/index.ts";
import type { A2aPeer } from "../peers/a2a-peer.ts";
import { watched } from "../peers/watched.ts";
import { type A2aEvent, type A2aTask, readA2aEvent } from "../rules/a2a-event.ts";
import { answerMessage, firstMessage, sendRequest } from "../rules/a2a-message.ts";
import { A2A_TASK_NOT_FOUND, A2A_UNSUPPORTED_OPERATION } from "../rules/a2a-refusal.ts";
import { type A2aState, readA2aState } from "../rules/a2a-state.ts";
import type { A2aAddress } from "../rules/agent-address.ts";
import { PeerFault, RESULT_LOST, TOO_MUCH, UNREACHABLE } from "../rules/refusal.ts";
import type { Remote } from "../store/remote-rows.ts";
import { beginRemote, inputOf, type Push, reach, requireContexts } from "./at-peer.ts";

/** Maximum number of stream elements that one attempt reads. */
const MAX_ELEMENTS = 10_000;
/** Maximum number of consecutive calls without a stream element. One more call without an element fails the attempt. */
const MAX_FAILURES = 6;
/** The first and the longest wait between two calls about one task, in milliseconds. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5000;

/** An assignment that an A2A agent on another server carries out. */
export interface AtA2aAgent {
  readonly push: Push;
  readonly address: A2aAddress;
  /** The agent's address, as `addressOf` encodes it. */
  readonly endpoint: string;
  readonly assignment: Assignment;
  readonly lease: Lease;
  readonly context: WorkContext;
}

/**
 * The work on one assignment at an A2A agent. This class sends the task as a message, relays changes, answers the
 * agent's questions, and resumes interrupted work.
 */
export class A2aDelegated {
  readonly #at: AtA2aAgent;
  readonly #peer: A2aPeer;
  readonly #remote: Remote;
  /** Aborts when the task has ended on the platform, or when the platform wants to interrupt the work. */
  readonly #either: AbortSignal;
  /** The number of the delegator's answers before the task began at this agent. */
  readonly #earlierAnswers: number;
  #state: A2aState | undefined;
  #task: A2aTask | undefined;
  /** The answer that the agent has not acknowledged. */
  #unacknowledged: Message | undefined;
  /** Whether the next call reads the task instead of subscribing to it. */
  #readsNext = false;
  #elements = 0;
  /** What arrived since the last wait: nothing, the task's state, or a change of the task. */
  #heard: "nothing" | "snapshot" | "change" = "nothing";
  /** Number of consecutive calls without a stream element. */
  #failures = 0;
  #waitMs = FIRST_WAIT_MS;
  #lastProgress = "";
  #fault: PeerFault | undefined;

  private constructor(at: AtA2aAgent, peer: A2aPeer, remote: Remote) {
    this.#at = at;
    this.#peer = peer;
    this.#remote = remote;
    this.#state = readA2aState(remote.peerState);
    this.#earlierAnswers = at.context.answers.length;
    this.#either = AbortSignal.any([at.context.signal, at.context.interrupting]);
  }

  /**
   * Runs an assignment at its agent. Continues from the current state of the agent's task.
   *
   * @throws WorkFailure, WorkSuspension, PeerFault; DeputeError with the reasons of {@link beginRemote}; the reason of
   * `context.signal` once that signal aborts
   */
  static async run(at: AtA2aAgent): Promise<WorkResult> {
    const { push, address, endpoint, lease, context } = at;
    const { task } = context;
    const known = await push.remotes.find(task.id);
    // The agent's address has changed, so the platform cancels the task at the earlier address.
    if (known !== undefined && known.endpoint !== endpoint) {
      await push.remotes.callOff(known, "the agent's address has changed");
    }
    const isFirst = known === undefined;
    const remote =
      known?.endpoint === endpoint
        ? known
        : await beginRemote(push, { task, lease, endpoint, terms: "{}", isFirst });
    const peer = await push.a2aPeerAt(address);
    try {
      return await new A2aDelegated(at, peer, remote).#run();
    } finally {
      peer.close();
    }
  }

  async #run(): Promise<WorkResult> {
    let message = this.#state === undefined ? this.#firstMessage() : undefined;
    for (;;) {
      const outcome = await this.#follow(message);
      message = undefined;
      if (outcome === "interrupted") await this.#interrupt();
      else if (outcome === "broken") {
        await this.#wait();
        // The agent has sent no task id yet, so the platform repeats the first message with the same message id.
        if (this.#state === undefined) message = this.#firstMessage();
      } else if (outcome.kind === "complete") return { output: outcome.output };
      else if (outcome.kind === "asks") message = await this.#answer(outcome);
      else await this.#fail(outcome);
    }
  }

  #firstMessage(): Message {
    const { assignment, context } = this.#at;
    requireContexts(assignment);
    const { task } = context;
    // This list omits the context that is the task's input, because the message already contains the input.
    const others = assignment.contexts.filter(({ envelope }) => envelope?.id !== task.inputContextId);
    return firstMessage(task, inputOf(task), others, this.#remote.remoteId);
  }

  /**
   * Sends a message, or subscribes to the task, and relays the elements of the response.
   *
   * @returns the event with which the agent ends the work or needs an answer; `interrupted` if the platform interrupts
   * the work; `broken` if the response ends in another way
   */
  async #follow(message: Message | undefined): Promise<Outcome> {
    const { push, context } = this.#at;
    const { signal, interrupting, task } = context;
    const stop = new AbortController();
    const end = () => stop.abort();
    if (this.#either.aborted) end();
    this.#either.addEventListener("abort", end, { once: true });
    try {
      const elements = this.#open(message, stop.signal)[Symbol.asyncIterator]();
      const silenceMs = limitsMs(task).heartbeat;
      // A new stream replaces a silent stream, and begins with the task's current state.
      for await (const element of watched(elements, {
        timers: push.timers,
        silenceMs,
        ask: async () => false,
      })) {
        const event = await this.#hear(element, message);
        if (event !== undefined) return event;
      }
    } catch (thrown) {
      if (!this.#either.aborted && !this.#mayPass(thrown, message)) throw thrown;
    } finally {
      this.#either.removeEventListener("abort", end);
      stop.abort();
    }
    signal.throwIfAborted();
    return interrupting.aborted ? "interrupted" : "broken";
  }

  #open(message: Message | undefined, signal: AbortSignal): AsyncIterable<StreamResponse> {
    const { push, address } = this.#at;
    const peer = this.#peer;
    if (message !== undefined) return peer.send(sendRequest(address, message), signal);
    const { taskId = "" } = this.#state ?? {};
    if (address.streaming && !this.#readsNext) return peer.subscribe(taskId, signal);
    this.#readsNext = false;
    return (async function* () {
      const value = await reach(push, signal, () => peer.get(taskId, signal));
      yield create(StreamResponseSchema, { payload: { case: "task", value } });
    })();
  }

  /**
   * Relays one element of a response.
   *
   * @param message the message in the request; undefined for a subscription, or a read of the task
   * @returns the event if it ends the work or needs an answer; otherwise undefined
   */
  async #hear(
    element: StreamResponse,
    message: Message | undefined,
  ): Promise<Exclude<Outcome, string> | undefined> {
    if (++this.#elements > MAX_ELEMENTS) {
      throw new PeerFault(TOO_MUCH, `the agent sent more than ${MAX_ELEMENTS} elements`);
    }
    const { task, event } = readA2aEvent(element, this.#task);
    if (task !== undefined) await this.#note(task);
    await this.#acknowledge(message);
    this.#heard = element.payload.case === "task" ? "snapshot" : "change";
    if (event.kind === "moved") return undefined;
    // The agent's response to an answer may begin with the task's earlier state, which still contains the question.
    if (event.kind === "asks" && element.payload.case === "task" && message?.taskId) return undefined;
    if (event.kind !== "progress") return event;
    // A snapshot of the task repeats its latest message.
    if (event.message !== this.#lastProgress) await this.#at.context.progress(0, 0, event.message);
    this.#lastProgress = event.message;
    return undefined;
  }

  /**
   * Records that the agent has the delegator's answer, once the agent has responded to the message with this answer.
   */
  async #acknowledge(message: Message | undefined): Promise<void> {
    if (message === undefined || message !== this.#unacknowledged || this.#state === undefined) return;
    this.#unacknowledged = undefined;
    await this.#store({ ...this.#state, answers: this.#state.answers + 1 });
  }

  /**
   * Stores the agent's ids of the task before the work continues. With these ids, the platform can resume or cancel the
   * task.
   */
  async #note(task: A2aTask): Promise<void> {
    this.#task = task;
    if (this.#state?.taskId === task.id) return;
    if (this.#state !== undefined)
      throw new PeerFault(RESULT_LOST, "the agent began the work again under another task id");
    await this.#store({ taskId: task.id, contextId: task.contextId, answers: this.#earlierAnswers });
  }

  async #store(state: A2aState): Promise<void> {
    this.#state = state;
    await this.#at.push.remotes.keepState(this.#remote, JSON.stringify(state));
  }

  /**
   * Returns the message with the answer to the agent's question. If the delegator has not answered yet, asks the
   * delegator.
   */
  async #answer({ needs, question }: Extract<A2aEvent, { kind: "asks" }>): Promise<Message | undefined> {
    const state = this.#state;
    if (state === undefined) throw new PeerFault(RESULT_LOST, "the agent asked a question without a task");
    this.#task = undefined;
    // The connection broke before the agent acknowledged the answer, so the platform sends the same message again.
    if (this.#unacknowledged !== undefined) return this.#unacknowledged;
    const { context } = this.#at;
    const prompt = question || "the agent needs an answer";
    const details = needs === "input" ? undefined : { needs };
    // After a restart, the store may already have the delegator's answer.
    const answer = context.answers[state.answers] ?? (await this.#ask(prompt, details, needs));
    if (answer === undefined) return undefined;
    this.#unacknowledged = answerMessage(answer, state, this.#remote.remoteId, state.answers);
    return this.#unacknowledged;
  }

  /** Asks the delegator. Returns undefined if the platform interrupts the work meanwhile. */
  async #ask(
    prompt: string,
    details: JsonValue | undefined,
    kind: QuestionKind,
  ): Promise<JsonValue | undefined> {
    const { interrupting } = this.#at.context;
    const asked = this.#at.context.ask(prompt, details, kind);
    const interrupted = new Promise<undefined>((resolve) => {
      if (interrupting.aborted) resolve(undefined);
      else interrupting.addEventListener("abort", () => resolve(undefined), { once: true });
    });
    return Promise.race([asked, interrupted]);
  }

  /** Fails the attempt, because the agent's task has ended without a result. */
  async #fail(
    event: Exclude<A2aEvent, { kind: "complete" | "asks" | "moved" | "progress" }>,
  ): Promise<never> {
    await this.#at.push.remotes.forget(this.#remote);
    const { reason, message } = FAILURES[event.kind];
    throw new WorkFailure(reason, event.message || message, false);
  }

  /**
   * Whether the attempt continues after a failed call.
   *
   * @param message the message that the call sent; undefined for a call without a message
   */
  #mayPass(thrown: unknown, message: Message | undefined): boolean {
    if (!(thrown instanceof PeerFault)) return false;
    this.#fault = thrown;
    if (thrown.reason === UNREACHABLE.reason) return true;
    if (this.#state === undefined) return false;
    if (thrown.code === A2A_TASK_NOT_FOUND) {
      throw new PeerFault(RESULT_LOST, "the agent does not know the task any more");
    }
    // An agent refuses a subscription to a task that has ended. The next call then reads the task's state.
    return message === undefined && thrown.code === A2A_UNSUPPORTED_OPERATION;
  }

  /** Waits before the next call. The wait grows while calls bring no changes. */
  async #wait(): Promise<void> {
    const { push, context } = this.#at;
    this.#failures = this.#heard === "nothing" ? this.#failures + 1 : 0;
    if (this.#failures > MAX_FAILURES) {
      throw this.#fault ?? new PeerFault(UNREACHABLE, "the agent's responses ended before the work ended");
    }
    if (this.#heard === "change") this.#waitMs = FIRST_WAIT_MS;
    this.#heard = "nothing";
    this.#readsNext = !this.#readsNext;
    await pause(this.#waitMs, push.timers, this.#either);
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
    context.signal.throwIfAborted();
  }

  /**
   * Interrupts the work. A2A has no call to suspend a task, so the platform cancels the task. After a resume, the work
   * begins again from the start.
   */
  async #interrupt(): Promise<never> {
    const { push, context } = this.#at;
    await push.remotes.callOff(this.#remote, context.task.suspensionRequest ?? "the work is interrupted");
    throw new WorkSuspension("");
  }
}

/**
 * How a call to the agent ended: the work has ended, needs an answer or must be interrupted, or only the call ended
 * (`broken`).
 */
type Outcome = Exclude<A2aEvent, { kind: "moved" | "progress" }> | "interrupted" | "broken";

/** The failures of tasks that ended at the agent without a result. */
const FAILURES = {
  failed: { reason: "TASK_FAILED", message: "the agent's work failed" },
  rejected: { reason: "REJECTED", message: "the agent rejected the work" },
  cancelled: { reason: "CANCELLED", message: "the agent cancelled the work" },
} as const;
