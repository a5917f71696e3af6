import { create } from "@bufbuild/protobuf";
import { WorkFailure, type WorkResult, WorkSuspension } from "@depute/client";
import { type DelegateRequest, TaskResumeRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { fromTimestamp } from "@depute/core";
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
import { type AtPeer, ownInputOf, pause, reach, requireContexts, shareAll } from "./at-peer.ts";
import type { OpenStream } from "./kept.ts";

/** Events that one attempt relays at most. */
export const MAX_EVENTS = 10_000;
/** Milliseconds between notes of how far the relaying is. */
const NOTE_MS = 1000;
/** How often in a row a stream may break off without an event before the attempt is given up. */
const MAX_BREAKS = 6;
const FIRST_BREAK_MS = 250;
const LONGEST_BREAK_MS = 5000;
/** Milliseconds between questions where a stream cannot be had again. */
const ASK_MS = 2000;
/** How often in a row a silent endpoint may leave a question unanswered. */
const MAX_UNANSWERED = 3;

/** What stands for the last event of an endpoint that does not number them; no id has a space in it. */
const UNNUMBERED = "not numbered";

/** The endpoint's states in which nothing more comes. (NEKTE, task life cycle) */
const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);
/** The state where the endpoint does not answer such questions. */
const UNTOLD = "";

/** How a stream left the work: done, to be interrupted here, or with more to come. */
type Left = WorkResult | "interrupted" | "broken";

/** Free work at an endpoint: handed over, relayed, taken up again, interrupted. (NEKTE 3 to 6) */
export class Delegated {
  readonly #at: AtPeer;
  readonly #remote: Remote;
  readonly #request: DelegateRequest;
  /** Aborts when the work is over here, or is to be interrupted. */
  readonly #either: AbortSignal;
  #peer: Peer;
  /** Whether the endpoint is known to have the work. */
  #isKnown: boolean;
  #lastEventId: string;
  /** Whether the endpoint refuses to tell of the work from where it was left. */
  #isClosed = false;
  #noted: string;
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
    this.#noted = remote.lastEventId;
    this.#isKnown = remote.lastEventId !== "";
    const contexts = assignment.missingContextIds.length === 0 ? assignment.contexts : "gone";
    this.#request = handOver(context.task, ownInputOf(context.task), contexts, remote.remoteId, terms);
  }

  /**
   * Does the work of an assignment at its endpoint, from where it is there.
   *
   * @throws WorkFailure, WorkSuspension, PeerFault
   */
  static async run(at: AtPeer): Promise<WorkResult> {
    const { remotes } = at.push;
    const known = await remotes.find(at.context.task.id);
    if (known?.endpoint === at.endpoint) return new Delegated(at, known).#run("taken up");
    // The agent has moved: what it did is called off where it was.
    if (known !== undefined) await remotes.callOff(known, "the agent has another endpoint now");
    return new Delegated(at, await noteNew(at, known === undefined)).#run("new");
  }

  async #run(how: "new" | "taken up"): Promise<WorkResult> {
    let open: OpenStream | undefined;
    try {
      open = how === "new" ? await this.#begin() : await this.#takeUp();
      for (;;) {
        const left = open === undefined ? "interrupted" : await this.#relay(open);
        open?.stop.abort();
        if (left === "interrupted") await this.#interrupt();
        else if (left !== "broken") return left;
        open = await this.#reopen();
      }
    } finally {
      await this.#noteRest();
      // What is kept goes on without this attempt.
      if (this.#peer !== NO_PEER) open?.stop.abort();
      this.#peer.close();
    }
  }

  /** Hands the work over. */
  async #begin(): Promise<OpenStream> {
    requireContexts(this.#at.assignment);
    await shareAll(this.#at, ownInputOf(this.#at.context.task) === undefined ? 1 : 0, this.#remote.remoteId);
    return this.#attach();
  }

  /** Goes on with what was handed over before this attempt, or this process. */
  async #takeUp(): Promise<OpenStream | undefined> {
    const { push, context } = this.#at;
    const { task, signal } = context;
    const state = await this.#status();
    if (state === undefined) {
      // It was noted, and the endpoint has never heard of it or has forgotten it.
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
        // Somebody else was faster.
        if (!(thrown instanceof PeerFault) || thrown.code !== TASK_NOT_RESUMABLE) throw thrown;
      });
    }
    const kept = push.kept.take(task.id);
    if (kept === undefined) return this.#lastEventId === UNNUMBERED ? this.#reopen() : this.#attach();
    this.#peer.close();
    this.#peer = kept.peer;
    return kept;
  }

  #attach(): OpenStream {
    const after = this.#lastEventId === "" ? undefined : this.#lastEventId;
    const stop = new AbortController();
    const events = this.#peer.delegate(this.#request, after, stop.signal)[Symbol.asyncIterator]();
    return { events, peer: this.#peer, stop };
  }

  /** Relays a stream as far as it goes. */
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
      for await (const told of watched(events, { timers: push.timers, silenceMs, ask })) {
        const heard = await this.#hear(told);
        if (heard === "suspended") return this.#suspend({ events, peer: this.#peer, stop });
        if (heard !== undefined) return heard;
      }
    } catch (thrown) {
      if (!either.aborted && !this.#mayPass(thrown)) throw thrown;
    } finally {
      either.removeEventListener("abort", end);
    }
    signal.throwIfAborted();
    return interrupting.aborted ? "interrupted" : "broken";
  }

  /** Whether a stream that broke off so is worth another look. */
  #mayPass(thrown: unknown): thrown is PeerFault {
    if (!(thrown instanceof PeerFault)) return false;
    this.#fault = thrown;
    if (thrown.reason === UNREACHABLE.reason) return true;
    // Who knows the work and does not hand it over again can still be asked how it stands.
    this.#isClosed = this.#isKnown && thrown.code !== undefined;
    return this.#isClosed;
  }

  /** @returns undefined while it goes on */
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
        throw new WorkFailure(reason, event.message || `the endpoint's code is ${event.code}`, retryable);
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

  /** Notes how far the relaying is, now and then: what is relayed again under its id counts once. */
  async #note(id: string | undefined, when?: "now"): Promise<void> {
    const { push } = this.#at;
    const nowMs = push.clock.now();
    const isFirst = this.#lastEventId === "";
    this.#lastEventId = id ?? UNNUMBERED;
    if (!isFirst && when === undefined && nowMs - this.#notedMs < NOTE_MS) return;
    this.#notedMs = nowMs;
    this.#noted = this.#lastEventId;
    await push.remotes.note(this.#remote, this.#lastEventId);
  }

  /** Who takes the work up after this attempt is not told again what was relayed by it, if that can be written down. */
  async #noteRest(): Promise<void> {
    if (this.#lastEventId === "" || this.#lastEventId === this.#noted) return;
    await this.#at.push.remotes.note(this.#remote, this.#lastEventId).catch(() => {});
  }

  /** The endpoint interrupts the work; its stream stays open, because that is where NEKTE goes on to tell of it. */
  #suspend(open: OpenStream | undefined): never {
    const { push, context } = this.#at;
    if (open !== undefined) {
      push.kept.keep(context.task.id, open);
      this.#peer = NO_PEER;
    }
    const checkpoint = this.#hasCheckpoint ? { nekte: { task_id: this.#remote.remoteId } } : undefined;
    throw new WorkSuspension("the endpoint suspended the work", checkpoint);
  }

  /** NEKTE has no call to suspend: the endpoint's work ends, and begins again when this is resumed. */
  async #interrupt(): Promise<never> {
    const { push, context } = this.#at;
    await push.remotes.callOff(this.#remote, context.task.suspensionRequest ?? "the work is interrupted");
    throw new WorkSuspension("");
  }

  /** Another stream of the same work, once that is worth having; undefined when the work is interrupted meanwhile. */
  async #reopen(): Promise<OpenStream | undefined> {
    const { push, context } = this.#at;
    const { signal, interrupting } = context;
    for (;;) {
      this.#breaks++;
      if (this.#breaks > MAX_BREAKS) {
        throw this.#fault ?? new PeerFault(UNREACHABLE, "the endpoint's stream ends before the work does");
      }
      const waitMs = Math.min(FIRST_BREAK_MS * 2 ** (this.#breaks - 1), LONGEST_BREAK_MS);
      await pause(push.timers, waitMs, this.#either);
      signal.throwIfAborted();
      if (interrupting.aborted) return undefined;
      const state = await this.#status();
      if (state === undefined) {
        if (this.#isKnown)
          throw new PeerFault(RESULT_LOST, "the endpoint knows nothing of the work any more");
        return this.#attach();
      }
      if (state === "suspended") return this.#suspend(undefined);
      const canFollow = !this.#isClosed && this.#lastEventId !== UNNUMBERED;
      // The end may have been missed, so it is asked for once more.
      if (canFollow && (!ENDED.has(state) || this.#breaks === 1)) return this.#attach();
      if (ENDED.has(state)) return this.#endAs(state);
      if (canFollow) continue;
      if (state === UNTOLD) throw new PeerFault(RESULT_LOST, "the endpoint tells of the work no more");
      // Nobody tells of the work: only its state can be asked for, as long as it takes.
      this.#breaks = 0;
      await pause(push.timers, ASK_MS, this.#either);
    }
  }

  /** The work has ended, and nothing but that is known. */
  async #endAs(state: string): Promise<never> {
    await this.#at.push.remotes.forget(this.#remote);
    if (state === "failed") throw new WorkFailure("TASK_FAILED", "the endpoint's work failed", false);
    if (state === "cancelled") throw new WorkFailure("CANCELLED", "the endpoint cancelled the work", false);
    throw new PeerFault(RESULT_LOST, "the endpoint completed the work, and its result cannot be had");
  }

  /** The endpoint's state of the work; undefined when it knows nothing of it. (NEKTE 6) */
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

  /** Whether there is still something to wait for of an endpoint that has been silent for as long as a worker may be. */
  async #isStillAtIt(): Promise<boolean> {
    let state: string | undefined;
    try {
      state = await this.#status();
      this.#unanswered = 0;
    } catch (thrown) {
      if (!(thrown instanceof PeerFault) || thrown.reason !== UNREACHABLE.reason) throw thrown;
      if (++this.#unanswered < MAX_UNANSWERED) return true;
      throw new PeerFault(UNREACHABLE, "the endpoint has fallen silent");
    }
    // A hand-over that is not answered yet is waited for.
    if (state === undefined) return !this.#isKnown;
    const isOver = ENDED.has(state) || state === "suspended";
    // What ends it may be on its way.
    const goOn = !isOver || !this.#isOverdue;
    this.#isOverdue = isOver;
    return goOn;
  }
}

/**
 * Notes work that is about to be handed over.
 *
 * @param isFirst whether nothing of the task is known at any endpoint
 */
async function noteNew(
  { push, context, endpoint, assignment, lease }: AtPeer,
  isFirst: boolean,
): Promise<Remote> {
  const { task } = context;
  const nowMs = push.clock.now();
  const { attemptExpireTime } = assignment;
  const untilMs = attemptExpireTime === undefined ? nowMs : fromTimestamp(attemptExpireTime);
  const carried = ownInputOf(task) === undefined ? assignment.contexts : [];
  const remote = {
    // The first hold has the task's own id; another one is another piece of work for the endpoint.
    remoteId: isFirst && lease.epoch === 1n ? task.id : `${task.id}.${lease.epoch}`,
    taskId: task.id,
    endpoint,
    terms: JSON.stringify(termsOf(task, carried, nowMs, untilMs)),
    lastEventId: "",
  };
  await push.remotes.begin(lease, remote);
  return remote;
}

/** Stands where the peer went with a stream that is kept. */
const NO_PEER = { close() {} } as Peer;
