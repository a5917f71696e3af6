import type { ContextEnvelope } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import type { Viewer } from "./visibility.ts";

/** Maximum lifetime of a context in milliseconds: 30 days. */
export const MAX_CONTEXT_MS = 30 * 86_400_000;

/** Maximum number of contexts that one task carries. */
export const MAX_CARRIED = 4;

/** Returns the time to live of an envelope, in milliseconds. */
export function ttlMsOf({ ttlS, ttlMs }: ContextEnvelope): number {
  return ttlMs === undefined ? ttlS * 1000 : Number(ttlMs);
}

/** Maximum total size of the contexts of one task, in bytes. */
export const MAX_CARRIED_BYTES = 1024 * 1024;

/** An agent that may read a context. */
export interface Reader {
  readonly agentId: string;
  /** The agent's key; empty for an agent without a key. */
  readonly principal: string;
}

/** Where the data of a context is: in the store, in memory that no disk backs, or `nowhere` after its deletion. */
export type DataPlace = "store" | "memory" | "nowhere";

/** The store's record of a context, with its data. */
export interface ContextRecord {
  readonly id: string;
  /** The owner's own id for the context; empty for none. */
  readonly externalId: string;
  readonly owner: string;
  /** The organization that owns the context; empty for none. */
  readonly organization: string;
  readonly requestId: string;
  /** Digest of the request that shared the context. Empty if the data was only in memory and is no longer there. */
  readonly digest: string;
  /** The envelope. Its data is empty if `dataIn` is `nowhere`. */
  readonly envelope: ContextEnvelope;
  readonly readers: readonly Reader[];
  /** Ids of the contexts from which the data was derived. */
  readonly derivedFrom: readonly string[];
  /** The time at which the context was shared, in epoch milliseconds. */
  readonly createMs: number;
  readonly expireMs: number;
  /** Whether the owner has revoked the context; its data is then deleted. */
  readonly isRevoked: boolean;
  readonly dataIn: DataPlace;
}

/** Returns the reason why a context has ended; undefined while it is live. */
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
 * Requires that the viewer is the owner or a reader of a live context.
 *
 * @throws DeputeError CONTEXT_NOT_FOUND for another viewer, CONTEXT_EXPIRED after its end
 */
export function requireReader(viewer: Viewer, record: ContextRecord, nowMs: number): void {
  if (!mayRead(viewer, record)) throw contextNotFound(record.id);
  requireLasting(record, nowMs);
}

/** @throws DeputeError CONTEXT_EXPIRED if the context can no longer be used */
export function requireLasting(record: ContextRecord, nowMs: number): void {
  const end = endOf(record, nowMs);
  if (end === undefined) return;
  throw new DeputeError(ErrorReason.CONTEXT_EXPIRED, `${OVER[end]}; share the context again`, {
    metadata: { context: record.id },
  });
}

const OVER = {
  revoked: "the context was revoked",
  expired: "the context has expired",
  lost: "the context was lost with the memory that held it",
} as const;

export function isOwner(viewer: Viewer, { owner }: ContextRecord): boolean {
  return viewer.mayActFor(owner);
}

/**
 * Requires that a context's scope contains the capability. A context without a scope may be used for all work. Depute's
 * choice: work without a capability cannot use a context with a scope.
 *
 * @param capabilityId the capability that needs the context; empty for work without a capability
 * @throws DeputeError CONTEXT_PERMISSION_DENIED
 */
export function requireScope({ id, envelope }: ContextRecord, capabilityId: string): void {
  const { scope } = envelope;
  if (scope === undefined || (capabilityId !== "" && scope.capabilities.includes(capabilityId))) return;
  throw denied(id, "the context's scope does not contain the capability", capabilityId);
}

/**
 * Requires that a task may carry a context to its delegate. The owner may always forward a context; a reader only with
 * the permission `forward`.
 *
 * @throws DeputeError the errors of requireReader and requireScope; CONTEXT_PERMISSION_DENIED for a reader without the
 * permission
 */
export function requireForward(
  viewer: Viewer,
  record: ContextRecord,
  capabilityId: string,
  nowMs: number,
): void {
  requireReader(viewer, record, nowMs);
  if (!isOwner(viewer, record) && record.envelope.permissions?.forward !== true) {
    throw denied(record.id, "the context does not allow forwarding", capabilityId);
  }
  requireScope(record, capabilityId);
}

/**
 * Requires that a derived envelope has at most the permissions and the scope of its source, and expires no later than
 * its source.
 *
 * @param expireMs the time at which the derived context expires, epoch milliseconds
 * @throws DeputeError the errors of requireReader; CONTEXT_PERMISSION_DENIED when the source forbids derivation;
 * INVALID_REQUEST for an envelope that exceeds its source
 */
export function requireDerivation(
  viewer: Viewer,
  source: ContextRecord,
  envelope: ContextEnvelope,
  expireMs: number,
  nowMs: number,
): void {
  requireReader(viewer, source, nowMs);
  const { permissions: allowed, scope: heldScope } = source.envelope;
  if (allowed?.derive !== true) throw denied(source.id, "the context does not allow derived contexts", "");
  for (const right of ["forward", "persist", "derive"] as const) {
    if (envelope.permissions?.[right] === true && !allowed[right]) {
      throw invalid(
        `envelope.permissions.${right}`,
        "must be false, because the source context does not allow it",
      );
    }
  }
  if (expireMs > source.expireMs)
    throw invalid("envelope.ttl_s", "must not end later than the source context");
  if (heldScope === undefined) return;
  const isWithin = envelope.scope?.capabilities.every((capability) =>
    heldScope.capabilities.includes(capability),
  );
  if (isWithin !== true) throw invalid("envelope.scope", "must be within the scope of the source context");
}

/** Returns the error for a context that does not exist, or that the caller may not see. */
export function contextNotFound(context: string): DeputeError {
  return new DeputeError(
    ErrorReason.CONTEXT_NOT_FOUND,
    "the context does not exist, or the caller may not see it",
    { metadata: { context } },
  );
}

function denied(context: string, message: string, capability: string): DeputeError {
  return new DeputeError(ErrorReason.CONTEXT_PERMISSION_DENIED, message, {
    metadata: { context, capability },
  });
}
