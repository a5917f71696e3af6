import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Work, type WorkContext, WorkFailure, type WorkResult } from "@depute/client";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Assignment, Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ContextRequestSchema, InvokeRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { type Clock, DEFAULT_RESULT_BUDGET, type Timers } from "@depute/core";
import { currentHash, type Invoked, type Peer } from "../peers/peer.ts";
import type { PeerAt } from "../peers/peers.ts";
import { budgetOf, isSameVersion, sharedApart } from "../rules/hand-over.ts";
import { PeerFault, UNREACHABLE } from "../rules/refusal.ts";
import { Delegated } from "./delegated.ts";
import type { Kept } from "./kept.ts";
import type { Remotes } from "./remotes.ts";

/** Milliseconds before an endpoint that refused at once, as one that is just starting does, is called again. */
const WAITS_MS = [250, 1000, 2500] as const;
/** A fault that took longer than this was none of starting. */
const AT_ONCE_MS = 1000;

/** What work at endpoints is done with. */
export interface Push {
  readonly peerAt: PeerAt;
  readonly remotes: Remotes;
  readonly kept: Kept;
  readonly clock: Clock;
  readonly timers: Timers;
}

/**
 * The work of an assignment, done by the agent's own NEKTE server: `nekte.invoke` for a capability, `nekte.delegate` for
 * free work. It is carried out as any worker's is, under the same lease.
 *
 * @param endpoint the agent's address
 */
export function workAt(push: Push, endpoint: string, assignment: Assignment, lease: Lease): Work {
  return async (_input, context) => {
    try {
      const peer = await push.peerAt(endpoint);
      const at = { push, peer, endpoint, assignment, lease, context };
      if (context.task.capabilityId !== "") {
        try {
          return await invoke(at);
        } finally {
          peer.close();
        }
      }
      return await Delegated.run(at);
    } catch (thrown) {
      throw thrown instanceof PeerFault ? toFailure(thrown) : thrown;
    }
  };
}

/** One assignment at its endpoint. */
export interface AtPeer {
  readonly push: Push;
  readonly peer: Peer;
  readonly endpoint: string;
  readonly assignment: Assignment;
  readonly lease: Lease;
  readonly context: WorkContext;
}

export function toFailure({ reason, message, retryable }: PeerFault): WorkFailure {
  return new WorkFailure(reason, message, retryable);
}

/** @throws WorkFailure CONTEXT_EXPIRED when a context that was to go along is not there any more */
export function requireContexts({ missingContextIds }: Assignment): void {
  if (missingContextIds.length === 0) return;
  throw new WorkFailure("CONTEXT_EXPIRED", "a context that goes along has expired or was revoked", false);
}

/** The task's input; undefined where it has none. */
export function inputOf({ input }: Task): JsonValue | undefined {
  return input === undefined ? undefined : toJson(ValueSchema, input);
}

/** The task's input where it was given itself; undefined where it has none, or a context goes along as the input. */
export function ownInputOf(task: Task): JsonValue | undefined {
  return task.inputContextId === "" ? inputOf(task) : undefined;
}

/** Shares contexts with the endpoint before the work that needs them. */
export async function shareAll(
  { push, peer, assignment, context }: AtPeer,
  carried: 0 | 1,
  remoteId: string,
): Promise<void> {
  for (const envelope of sharedApart(assignment.contexts, carried, remoteId, push.clock.now())) {
    const request = create(ContextRequestSchema, { action: "share", envelope });
    await reach(push, context.signal, () => peer.share(request, context.signal));
  }
}

/** Calls again an endpoint that cannot be reached and said so at once. */
export async function reach<T>(
  { clock, timers }: Push,
  signal: AbortSignal,
  call: () => Promise<T>,
): Promise<T> {
  for (const waitMs of WAITS_MS) {
    const beganMs = clock.now();
    try {
      return await call();
    } catch (thrown) {
      const mayPass = thrown instanceof PeerFault && thrown.reason === UNREACHABLE.reason;
      if (!mayPass || clock.now() - beganMs > AT_ONCE_MS || signal.aborted) throw thrown;
      await pause(timers, waitMs, signal);
    }
  }
  return call();
}

/** Waits, or until the signal aborts. */
export function pause(timers: Timers, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = timers.after(ms, done);
    signal.addEventListener("abort", done, { once: true });
  });
}

/**
 * Invokes a capability (NEKTE 2). Its result has to fit the capability's schema, which only the full one surely does, so
 * that one is asked for, within the task's own budget.
 */
async function invoke(at: AtPeer): Promise<WorkResult> {
  const { push, assignment, lease, context } = at;
  const { task, signal } = context;
  requireContexts(assignment);
  await shareAll(at, 0, `${task.id}.${lease.epoch}`);
  const { maxTokens } = task.budget ?? DEFAULT_RESULT_BUDGET;
  const request = create(InvokeRequestSchema, {
    cap: task.capabilityId,
    input: new TextEncoder().encode(JSON.stringify(inputOf(task) ?? null)),
    budget: budgetOf({ maxTokens, detailLevel: "full" }),
  });
  const { output, tokensUsed } = await reach(push, signal, () => invokeVersion(at, request));
  // What cannot be a result here is refused before anything is made of it.
  fromJson(ValueSchema, output);
  return { output, tokensUsed };
}

/**
 * Names the version that the task was made for. An endpoint may write the same version with more digits: it is then named
 * as the endpoint writes it, so that no version runs unnamed.
 */
async function invokeVersion(
  { peer, context }: AtPeer,
  request: ReturnType<typeof create<typeof InvokeRequestSchema>>,
): Promise<Invoked> {
  const { task, signal } = context;
  if (task.capabilityHash === "") return peer.invoke(request, signal);
  try {
    return await peer.invoke({ ...request, h: task.capabilityHash }, signal);
  } catch (thrown) {
    const theirs = currentHash(thrown);
    if (theirs === undefined || !isSameVersion(task.capabilityHash, theirs)) throw thrown;
    return peer.invoke({ ...request, h: theirs }, signal);
  }
}
