import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type WorkContext, WorkFailure } from "@depute/client";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Assignment, Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ContextRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import type { Clock, Timers } from "@depute/core";
import type { Peer } from "../peers/peer.ts";
import type { PeerAt } from "../peers/peers.ts";
import { sharedApart } from "../rules/hand-over.ts";
import { PeerFault, UNREACHABLE } from "../rules/refusal.ts";
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
