import type { ContextEnvelope } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import type { Viewer } from "./visibility.ts";

/** The longest time that a context can be used, milliseconds: 30 days. */
export const MAX_CONTEXT_MS = 30 * 86_400_000;

/** Contexts that go along with one task. */
export const MAX_CARRIED = 4;

/** How long an envelope's data may be used, milliseconds. */
export function ttlMsOf({ ttlS, ttlMs }: ContextEnvelope): number {
  return ttlMs === undefined ? ttlS * 1000 : Number(ttlMs);
}

/** Bytes of the contexts that go along with one task, together. */
export const MAX_CARRIED_BYTES = 1024 * 1024;

/** An agent that may read a context. */
export interface Reader {
  readonly agentId: string;
  /** Empty for an agent without a key. */
  readonly principal: string;
}

/** Where the data of a context is: in the store, in the memory of this process, or deleted. */
export type DataPlace = "store" | "memory" | "nowhere";

/** A context as it is kept. */
export interface ContextRecord {
  readonly id: string;
  /** The owner's own id; empty for none. */
  readonly externalId: string;
  readonly owner: string;
  readonly requestId: string;
  /** Digest of the request that shared it; empty where its data may not be persisted and is gone. */
  readonly digest: string;
  /** Its data is empty where `dataIn` is `nowhere`. */
  readonly envelope: ContextEnvelope;
  readonly readers: readonly Reader[];
  /** Ids of the contexts that the data was made of. */
  readonly derivedFrom: readonly string[];
  /** Epoch milliseconds. */
  readonly createMs: number;
  readonly expireMs: number;
  /** Whether the owner took it back; its data is gone then. */
  readonly isRevoked: boolean;
  readonly dataIn: DataPlace;
}

/** Why a context can be used no more; undefined while it can. */
export function endOf(record: ContextRecord, nowMs: number): "revoked" | "expired" | "lost" | undefined {
  if (record.isRevoked) return "revoked";
  if (record.expireMs <= nowMs) return "expired";
  return record.dataIn === "nowhere" ? "lost" : undefined;
}

/** Whether a viewer may read a context, as its owner or as one of its readers. */
export function mayRead(viewer: Viewer, record: ContextRecord): boolean {
  return isOwner(viewer, record) || record.readers.some(({ principal }) => viewer.mayActFor(principal));
}

/**
 * Refuses who can read a context neither as its owner nor as one of its readers, and everybody once it is over.
 *
 * @throws DeputeError CONTEXT_NOT_FOUND, CONTEXT_EXPIRED
 */
export function requireReader(viewer: Viewer, record: ContextRecord, nowMs: number): void {
  if (!mayRead(viewer, record)) throw contextNotFound(record.id);
  requireLasting(record, nowMs);
}

/** @throws DeputeError CONTEXT_EXPIRED */
export function requireLasting(record: ContextRecord, nowMs: number): void {
  const end = endOf(record, nowMs);
  if (end === undefined) return;
  throw new DeputeError(ErrorReason.CONTEXT_EXPIRED, `${OVER[end]}; share it again`, {
    metadata: { context: record.id },
  });
}

const OVER = {
  revoked: "the context was revoked",
  expired: "the context has expired",
  lost: "the context is gone with the process that held it",
} as const;

export function isOwner(viewer: Viewer, { owner }: ContextRecord): boolean {
  return viewer.mayActFor(owner);
}

/**
 * Holds a context to its scope. Depute's choice: free work runs no capability, so no scope holds it.
 *
 * @param capabilityId what the context is needed for; empty for free work
 * @throws DeputeError CONTEXT_PERMISSION_DENIED
 */
export function requireScope({ id, envelope }: ContextRecord, capabilityId: string): void {
  const { scope } = envelope;
  if (scope === undefined || (capabilityId !== "" && scope.capabilities.includes(capabilityId))) return;
  throw denied(id, "the context is for other capabilities", capabilityId);
}

/**
 * Refuses to send a context along with a task where it may not go.
 *
 * @throws DeputeError as requireReader and requireScope; CONTEXT_PERMISSION_DENIED when it may not be forwarded
 */
export function requireForward(
  viewer: Viewer,
  record: ContextRecord,
  capabilityId: string,
  nowMs: number,
): void {
  requireReader(viewer, record, nowMs);
  if (!isOwner(viewer, record) && record.envelope.permissions?.forward !== true) {
    throw denied(record.id, "the context may not be forwarded", capabilityId);
  }
  requireScope(record, capabilityId);
}

/**
 * Refuses an envelope made of another context that allows more than that one, or lasts longer.
 *
 * @param expireMs when the new one expires, epoch milliseconds
 * @throws DeputeError as requireReader; CONTEXT_PERMISSION_DENIED when nothing may be derived; INVALID_REQUEST
 */
export function requireDerivation(
  viewer: Viewer,
  source: ContextRecord,
  envelope: ContextEnvelope,
  expireMs: number,
  nowMs: number,
): void {
  requireReader(viewer, source, nowMs);
  const { permissions: allowed, scope: held } = source.envelope;
  if (allowed?.derive !== true) throw denied(source.id, "nothing may be derived from the context", "");
  for (const right of ["forward", "persist", "derive"] as const) {
    if (envelope.permissions?.[right] === true && !allowed[right]) {
      throw invalid(`envelope.permissions.${right}`, "is more than what it is derived from allows");
    }
  }
  if (expireMs > source.expireMs) throw invalid("envelope.ttl_s", "outlasts what it is derived from");
  if (held === undefined) return;
  const isWithin = envelope.scope?.capabilities.every((capability) => held.capabilities.includes(capability));
  if (isWithin !== true) throw invalid("envelope.scope", "is wider than that of what it is derived from");
}

/** The refusal of a context that is not there for this caller. */
export function contextNotFound(context: string): DeputeError {
  return new DeputeError(ErrorReason.CONTEXT_NOT_FOUND, "no such context", { metadata: { context } });
}

function denied(context: string, message: string, capability: string): DeputeError {
  return new DeputeError(ErrorReason.CONTEXT_PERMISSION_DENIED, message, {
    metadata: { context, capability },
  });
}
