import { create } from "@bufbuild/protobuf";
import { WorkFailure, type WorkResult, WorkSuspension } from "@depute/client";
import { type DelegateRequest, TaskResumeRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { fromTimestamp, pause } from "@depute/core";
import { limitsMs } from "../../core/index.ts";
import type { Peer } from "../peers/peer.ts";
import { watched } from "../peers/watched.ts";
import { budgetOf, handOver, readTerms, termsOf } from "../rules/hand-over.ts";
import type { Numbered } from "../rules/peer-event.ts";
import {
  PeerFault,
  REFUSED,
  RESULT_LOST,
  refusalOf,
  TASK_NOT_FOUND,
  TASK_NOT_RESUMABLE,
  TOO_MUCH,
  UNREACHABLE,
} from "../rules/refusal.ts";
import type { Remote } from "../store/remote-rows.ts";
import { type AtPeer, beginRemote, ownInputOf, reach, requireContexts, shareAll } from "./at-peer.ts";
import type { OpenStream } from "./kept.ts";

/** Maximum number of events that one attempt relays. */
export const MAX_EVENTS = 10_000;
/** Milliseconds between two writes of the last relayed event's id to the store. */
const NOTE_MS = 1000;
/** Maximum number of consecutive breaks of a stream without an event in between. One more break fails the attempt. */
const MAX_BREAKS = 6;
const FIRST_BREAK_MS = 250;
const LONGEST_BREAK_MS = 5000;
/** Milliseconds between two status calls after the endpoint has refused to resume the stream. */
const ASK_MS = 2000;
/** Maximum number of consecutive status calls without a response, while the stream sends no events. */
const MAX_UNANSWERED = 3;

/** Placeholder for the last event's id if the endpoint sends no event ids. Real ids contain no space. */
const UNNUMBERED = "not numbered";

/** States of a task at the endpoint after which no event follows. (NEKTE, task life cycle) */
const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);
/** Placeholder for the state if the endpoint refuses status calls. */
const UNTOLD = "";

/** Why the relay of a stream ended: the work has a result, the work must be interrupted, or the stream broke off. */
type Left = WorkResult | "interrupted" | "broken";

/**
 * The work on one assignment without a capability, at an endpoint. This class delegates the work, relays its events,
 * resumes it and suspends it. (NEKTE 3 to 6)
 */
export class Delegated {
  readonly #at: AtPeer;
  readonly #remote: Remote;
  readonly #request: DelegateRequest;
  /** Aborts when the task has ended on the platform, or when the platform wants to interrupt the work. */
  readonly #either: AbortSignal;
  #peer: Peer;
  /** Whether the endpoint has shown that it has the task. */
  #isKnown: boolean;
  #lastEventId: string;
  /** Whether the endpoint refuses to resume the stream. */
  #isClosed = false;
  #notedEventId: string;
  #notedMs = 0;
  #events = 0;
  #breaks = 0;
  #unanswered = 0;
  #isOverdue = false;
  #hasCheckpoint = false;
  #fault: PeerFault | undefined;

  private constructor(at: AtPeer, remote: Remote) {
    const { context, assignment } = at;
    const terms = readTerms(remote.terms);
    if (terms === undefined) throw new Error(`the terms of ${remote.remoteId} cannot be read`);
    this.#at = at;
    this.#remote = remote;
    this.#peer = at.peer;
    this.#either = AbortSignal.any([context.signal, context.interrupting]);
    this.#lastEventId = remote.lastEventId;
    this.#notedEventId = remote.lastEventId;
    this.#isKnown = remote.lastEventId !== "";
    const contexts = assignment.missingContextIds.length === 0 ? assignment.contexts : "gone";
    this.#request = handOver(context.task, ownInputOf(context.task), contexts, remote.remoteId, terms);
  }

  /**
   * Runs an assignment at its endpoint. If an earlier attempt began the task at this endpoint, continues from the
   * task's current state.
   *
   * @throws WorkFailure, WorkSuspension, PeerFault; DeputeError with the reasons of {@link beginRemote}; the reason of
   * `context.signal` once that signal aborts
   */
  static async run(at: AtPeer): Promise<WorkResult> {
    const { remotes } = at.push;
    const knownRemote = await remotes.find(at.context.task.id);
    if (knownRemote?.endpoint === at.endpoint) return new Delegated(at, knownRemote).#run("taken up");
    // The agent's endpoint has changed, so the platform cancels the task at the earlier endpoint.
    if (knownRemote !== undefined) await remotes.callOff(knownRemote, "the agent's endpoint has changed");
    return new Delegated(at, await noteNew(at, knownRemote === undefined)).#run("new");
  }

  async #run(how: "new" | "taken up"): Promise<WorkResult> {
    let open: OpenStream | undefined;
    try {
      open = how === "new" ? await this.#begin() : await this.#takeUp();
      for (;;) {
        const outcome = open === undefined ? "interrupted" : await this.#relay(open);
        open?.stop.abort();
        if (outcome === "interrupted") await this.#interrupt();
        else if (outcome !== "broken") return outcome;
        open = await this.#reopen();
      }
    } finally {
      await this.#noteRest();
      // The kept stream of a suspended task stays open after this attempt. Every other stream ends.
      if (this.#peer !== NO_PEER) open?.stop.abort();
      this.#peer.close();
    }
  }

  async #begin(): Promise<OpenStream> {
    requireContexts(this.#at.assignment);
    await shareAll(this.#at, ownInputOf(this.#at.context.task) === undefined ? 1 : 0, this.#remote.remoteId);
    return this.#attach();
  }

  /** Continues a task at the endpoint that an earlier attempt or process began. */
  async #takeUp(): Promise<OpenStream | undefined> {
    const { push, context } = this.#at;
    const { task, signal } = context;
    const state = await this.#status();
    if (state === undefined) {
      // The store has a row for the task, but the endpoint never received the task or has deleted it.
      this.#isKnown = false;
      this.#lastEventId = "";
      return this.#begin();
    }
    this.#isKnown = true;
    if (state === "suspended") {
      const budget = task.budget && budgetOf(task.budget);
      const request = create(TaskResumeRequestSchema, {
        taskId: this.#remote.remoteId,
        ...(budget && { budget }),
      });
      await reach(push, signal, () => this.#peer.resume(request, signal)).catch((thrown: unknown) => {
        // TASK_NOT_RESUMABLE means that another call has already resumed the task, so this code ignores the error.
        if (!(thrown instanceof PeerFault) || thrown.code !== TASK_NOT_RESUMABLE) throw thrown;
      });
    }
    const keptStream = push.keptStreams.take(task.id);
    if (keptStream === undefined) return this.#lastEventId === UNNUMBERED ? this.#reopen() : this.#attach();
    this.#peer.close();
    this.#peer = keptStream.peer;
    return keptStream;
  }

  #attach(): OpenStream {
    const after = this.#lastEventId === "" ? undefined : this.#lastEventId;
    const stop = new AbortController();
    const events = this.#peer.delegate(this.#request, after, stop.signal)[Symbol.asyncIterator]();
    return { events, peer: this.#peer, stop };
  }

  /** Relays a stream until it ends or breaks off. */
  async #relay({ events, stop }: OpenStream): Promise<Left> {
    const { push, context } = this.#at;
    const { signal, interrupting, task } = context;
    const either = this.#either;
    const end = () => stop.abort();
    if (either.aborted) end();
    either.addEventListener("abort", end, { once: true });
    try {
      const ask = () => this.#isStillAtIt();
      const silenceMs = limitsMs(task).heartbeat;
      for await (const item of watched(events, { timers: push.timers, silenceMs, ask })) {
        const heardEvent = await this.#hear(item);
        if (heardEvent === "suspended") return this.#suspend({ events, peer: this.#peer, stop });
        if (heardEvent !== undefined) return heardEvent;
      }
    } catch (thrown) {
      if (!either.aborted && !this.#mayPass(thrown)) throw thrown;
    } finally {
      either.removeEventListener("abort", end);
    }
    signal.throwIfAborted();
    return interrupting.aborted ? "interrupted" : "broken";
  }

  /** Whether the attempt can continue after a failure of the stream. */
  #mayPass(thrown: unknown): thrown is PeerFault {
    if (!(thrown instanceof PeerFault)) return false;
    this.#fault = thrown;
    if (thrown.reason === UNREACHABLE.reason) return true;
    // The endpoint has the task but refuses to resume the stream. Status calls replace the stream.
    this.#isClosed = this.#isKnown && thrown.code !== undefined;
    return this.#isClosed;
  }

  /**
   * Relays one event.
   *
   * @returns undefined while the work continues
   */
  async #hear({ event, id }: Numbered): Promise<WorkResult | "suspended" | undefined> {
    const { context, push } = this.#at;
    if (++this.#events > MAX_EVENTS) {
      throw new PeerFault(TOO_MUCH, `the endpoint sent more than ${MAX_EVENTS} events`);
    }
    this.#isKnown = true;
    this.#breaks = 0;
    const reportId = id === undefined ? undefined : `${this.#remote.remoteId}:${id}`.slice(0, 128);
    switch (event.kind) {
      case "progress":
        await context.progress(event.processed, event.total, event.message, reportId);
        break;
      case "partial":
        await context.partial(event.output, event.level, reportId);
        break;
      case "complete":
        return event.result;
      case "suspended":
        this.#hasCheckpoint = event.checkpointAvailable;
        await this.#note(id, "now");
        return "suspended";
      case "failed": {
        await push.remotes.forget(this.#remote);
        const { reason, retryable } = refusalOf(event.code);
        throw new WorkFailure(
          reason,
          event.message || `the work failed at the endpoint with code ${event.code}`,
          retryable,
        );
      }
      case "cancelled":
        await push.remotes.forget(this.#remote);
        throw new WorkFailure("CANCELLED", event.reason || "the endpoint cancelled the work", false);
      case "moved":
        break;
    }
    await this.#note(id);
    return undefined;
  }

  /**
   * Stores the id of the last relayed event, at intervals. A restarted process may relay an event again under the same
   * id. The platform counts events with the same id once.
   */
  async #note(id: string | undefined, when?: "now"): Promise<void> {
    const { push } = this.#at;
    const nowMs = push.clock.now();
    const isFirst = this.#lastEventId === "";
    this.#lastEventId = id ?? UNNUMBERED;
    if (!isFirst && when === undefined && nowMs - this.#notedMs < NOTE_MS) return;
    this.#notedMs = nowMs;
    this.#notedEventId = this.#lastEventId;
    await push.remotes.note(this.#remote, this.#lastEventId);
  }

  /**
   * Stores the id of the last relayed event before the attempt ends. The next attempt then does not relay the event
   * again.
   */
  async #noteRest(): Promise<void> {
    if (this.#lastEventId === "" || this.#lastEventId === this.#notedEventId) return;
    await this.#at.push.remotes.note(this.#remote, this.#lastEventId).catch(() => {});
  }

  /**
   * Suspends the task after the endpoint suspended its work. The stream stays open, because NEKTE continues on it after
   * a resume.
   */
  #suspend(open: OpenStream | undefined): never {
    const { push, context } = this.#at;
    if (open !== undefined) {
      push.keptStreams.keep(context.task.id, open);
      this.#peer = NO_PEER;
    }
    const checkpoint = this.#hasCheckpoint ? { nekte: { task_id: this.#remote.remoteId } } : undefined;
    throw new WorkSuspension("the endpoint suspended the work", checkpoint);
  }

  /**
   * Interrupts the work. NEKTE has no call to suspend a task, so the platform cancels the task. After a resume, the
   * work begins again from the start.
   */
  async #interrupt(): Promise<never> {
    const { push, context } = this.#at;
    await push.remotes.callOff(this.#remote, context.task.suspensionRequest ?? "the work is interrupted");
    throw new WorkSuspension("");
  }

  /**
   * Waits, then opens another stream of the same work. Returns undefined if the platform wants to interrupt the work.
   */
  async #reopen(): Promise<OpenStream | undefined> {
    const { push, context } = this.#at;
    const { signal, interrupting } = context;
    for (;;) {
      this.#breaks++;
      if (this.#breaks > MAX_BREAKS) {
        throw this.#fault ?? new PeerFault(UNREACHABLE, "the endpoint's stream ended before the work ended");
      }
      const waitMs = Math.min(FIRST_BREAK_MS * 2 ** (this.#breaks - 1), LONGEST_BREAK_MS);
      await pause(waitMs, push.timers, this.#either);
      signal.throwIfAborted();
      if (interrupting.aborted) return undefined;
      const state = await this.#status();
      if (state === undefined) {
        if (this.#isKnown) throw new PeerFault(RESULT_LOST, "the endpoint does not know the task any more");
        return this.#attach();
      }
      if (state === "suspended") return this.#suspend(undefined);
      const canFollow = !this.#isClosed && this.#lastEventId !== UNNUMBERED;
      // The stream may have broken off before the final event, so this code opens the stream once more.
      if (canFollow && (!ENDED.has(state) || this.#breaks === 1)) return this.#attach();
      if (ENDED.has(state)) return this.#endAs(state);
      if (canFollow) continue;
      if (state === UNTOLD)
        throw new PeerFault(RESULT_LOST, "the endpoint refuses the stream and the status of the task");
      // No stream can report the task's end, so status calls replace the stream.
      this.#breaks = 0;
      await pause(ASK_MS, push.timers, this.#either);
    }
  }

  /** Ends the attempt by the task's state at the endpoint. The result did not arrive. */
  async #endAs(state: string): Promise<never> {
    await this.#at.push.remotes.forget(this.#remote);
    if (state === "failed") throw new WorkFailure("TASK_FAILED", "the endpoint's work failed", false);
    if (state === "cancelled") throw new WorkFailure("CANCELLED", "the endpoint cancelled the work", false);
    throw new PeerFault(RESULT_LOST, "the endpoint completed the work, but its result is not available");
  }

  /**
   * Returns the state of the work at the endpoint; undefined if the endpoint does not know the task, UNTOLD if it
   * refuses the call. (NEKTE 6)
   */
  async #status(): Promise<string | undefined> {
    const { push, context } = this.#at;
    const { signal } = context;
    try {
      return await reach(push, signal, () => this.#peer.status(this.#remote.remoteId, signal));
    } catch (thrown) {
      if (!(thrown instanceof PeerFault)) throw thrown;
      if (thrown.code === TASK_NOT_FOUND) return undefined;
      if (thrown.reason === REFUSED.reason) return UNTOLD;
      throw thrown;
    }
  }

  /**
   * Whether the endpoint still works on the task although its stream is silent. If false, the attempt abandons the
   * stream.
   */
  async #isStillAtIt(): Promise<boolean> {
    let state: string | undefined;
    try {
      state = await this.#status();
      this.#unanswered = 0;
    } catch (thrown) {
      if (!(thrown instanceof PeerFault) || thrown.reason !== UNREACHABLE.reason) throw thrown;
      if (++this.#unanswered < MAX_UNANSWERED) return true;
      throw new PeerFault(UNREACHABLE, "the endpoint sends no events and does not answer status calls");
    }
    // Before the endpoint has shown that it has the task, the task may still be on its way. A missing state then does
    // not end the wait.
    if (state === undefined) return !this.#isKnown;
    const isOver = ENDED.has(state) || state === "suspended";
    // After the first status that reports an end or a suspension, the event about it may still arrive. The second such
    // status ends the wait.
    const goOn = !isOver || !this.#isOverdue;
    this.#isOverdue = isOver;
    return goOn;
  }
}

/**
 * Stores the row of a task before the first call to its endpoint.
 *
 * @param isFirst whether the task was never at an endpoint before
 */
function noteNew({ push, context, endpoint, assignment, lease }: AtPeer, isFirst: boolean): Promise<Remote> {
  const { task } = context;
  const nowMs = push.clock.now();
  const { attemptExpireTime } = assignment;
  const untilMs = attemptExpireTime === undefined ? nowMs : fromTimestamp(attemptExpireTime);
  const carried = ownInputOf(task) === undefined ? assignment.contexts : [];
  const terms = JSON.stringify(termsOf(task, carried, nowMs, untilMs));
  return beginRemote(push, { task, lease, endpoint, terms, isFirst });
}

/**
 * Replaces an attempt's peer after `keptStreams` took over the stream. So the kept stream stays open when the attempt
 * closes its peer.
 */
const NO_PEER = { close() {} } as Peer;
