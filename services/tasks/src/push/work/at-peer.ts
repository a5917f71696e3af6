import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type WorkContext, WorkFailure } from "@depute/client";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Assignment, Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ContextRequestSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { type Clock, pause, type Timers } from "@depute/core";
import type { A2aPeerAt } from "../peers/a2a-peers.ts";
import type { Peer } from "../peers/peer.ts";
import type { PeerAt } from "../peers/peers.ts";
import { sharedApart } from "../rules/hand-over.ts";
import { PeerFault, UNREACHABLE } from "../rules/refusal.ts";
import type { Remote } from "../store/remote-rows.ts";
import type { Kept } from "./kept.ts";
import type { Remotes } from "./remotes.ts";

/**
 * Milliseconds to wait before each further call to an endpoint that failed immediately, for example because the
 * endpoint is starting.
 */
const WAITS_MS = [250, 1000, 2500] as const;
/** A call that fails within this many milliseconds counts as an immediate failure. */
const AT_ONCE_MS = 1000;

/** The dependencies of work at endpoints. */
export interface Push {
  readonly peerAt: PeerAt;
  readonly a2aPeerAt: A2aPeerAt;
  readonly remotes: Remotes;
  readonly keptStreams: Kept;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** An assignment at an endpoint. */
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

/** A task that is about to begin at an endpoint. */
interface NewRemote {
  readonly task: Task;
  readonly lease: Lease;
  readonly endpoint: string;
  readonly terms: string;
  /** Whether the task was never at an endpoint before. */
  readonly isFirst: boolean;
}

/**
 * Records a task before the first call to its endpoint. A task with its first lease that was never at an endpoint keeps
 * its own id there. Any other task gets a new id there, so that the endpoint treats it as new work.
 *
 * @throws DeputeError LEASE_LOST, TASK_NOT_FOUND
 */
export async function beginRemote(
  { remotes }: Push,
  { task, lease, endpoint, terms, isFirst }: NewRemote,
): Promise<Remote> {
  const remoteId = isFirst && lease.epoch === 1n ? task.id : `${task.id}.${lease.epoch}`;
  const remote = { remoteId, taskId: task.id, endpoint, terms, lastEventId: "" };
  await remotes.begin(lease, remote);
  return { ...remote, peerState: "" };
}

/**
 * Requires that all contexts of the task are available.
 *
 * @throws WorkFailure CONTEXT_EXPIRED
 */
export function requireContexts({ missingContextIds }: Assignment): void {
  if (missingContextIds.length === 0) return;
  throw new WorkFailure("CONTEXT_EXPIRED", "a context of the task has expired or was revoked", false);
}

/** Returns the task's input; undefined if there is none. */
export function inputOf({ input }: Task): JsonValue | undefined {
  return input === undefined ? undefined : toJson(ValueSchema, input);
}

/** Returns the task's own input; undefined if the task has no input, or if a context of the task is its input. */
export function ownInputOf(task: Task): JsonValue | undefined {
  return task.inputContextId === "" ? inputOf(task) : undefined;
}

/** Shares contexts with the endpoint before the work that needs them starts. */
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

/**
 * Calls an endpoint. Repeats the call up to three times while the endpoint is unreachable and the call fails
 * immediately.
 */
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
      await pause(waitMs, timers, signal);
    }
  }
  return call();
}
