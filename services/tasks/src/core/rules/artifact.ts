import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import type { TaskRecord } from "./record.ts";
import { isTerminal } from "./state-machine.ts";
import { isDelegate, isDelegator, isVisible, type Viewer } from "./visibility.ts";

/** Limits of the artifacts of one task: their maximum number, and their maximum total size in bytes. */
export const MAX_ARTIFACTS = 100;
export const MAX_ARTIFACT_BYTES = 256 * 1024 * 1024;

/** The store's record of an artifact. */
export interface ArtifactRecord {
  readonly id: string;
  readonly taskId: string;
  readonly name: string;
  readonly mediaType: string;
  /** Size of the whole artifact in bytes. */
  readonly size: number;
  /** SHA-256 of the artifact as 64 hex digits. */
  readonly sha256: string;
  /** Number of bytes stored so far. */
  readonly written: number;
  readonly isWhole: boolean;
  readonly maker: string;
  /** The organization that owns the artifact; empty for none. */
  readonly organization: string;
  /** Whether the delegate created the artifact. */
  readonly isResult: boolean;
  /** The time at which the artifact was created, in epoch milliseconds. */
  readonly createMs: number;
}

/**
 * Whether a viewer may see an artifact. If the task has an overseer, the delegate's artifacts stay hidden from the
 * delegator until the task is completed.
 */
export function isArtifactVisible(viewer: Viewer, record: TaskRecord, artifact: ArtifactRecord): boolean {
  if (!isVisible(viewer, record)) return false;
  const { task } = record;
  const isHeld = artifact.isResult && task.overseerId !== "" && task.status !== TaskStatus.COMPLETED;
  return !isHeld || !isDelegator(viewer, record) || isDelegate(viewer, record);
}

/**
 * Requires that one more artifact fits the limits of its task.
 *
 * @throws DeputeError LIMIT_EXCEEDED
 */
export function requireRoom(stored: { number: number; bytes: number }, size: number): void {
  if (stored.number >= MAX_ARTIFACTS) throw exceeded("number", MAX_ARTIFACTS);
  if (stored.bytes + size > MAX_ARTIFACT_BYTES) throw exceeded("bytes", MAX_ARTIFACT_BYTES);
}

/**
 * Returns the number of bytes of a write that the store does not have yet.
 *
 * @throws DeputeError INVALID_REQUEST for bytes after a gap, or beyond the artifact's size
 */
export function newBytes({ written, size }: ArtifactRecord, offset: number, length: number): number {
  if (offset > written) throw invalid("offset", `must be at most ${written}, the number of stored bytes`);
  if (offset + length > size) throw invalid("data", `must end within the artifact's ${size} bytes`);
  return Math.max(0, offset + length - written);
}

/** Returns the error for an artifact that does not exist, or that the caller may not see. */
export function artifactNotFound(artifact: string): DeputeError {
  return new DeputeError(
    ErrorReason.ARTIFACT_NOT_FOUND,
    "the artifact does not exist, or the caller may not see it",
    { metadata: { artifact } },
  );
}

/** Whether the task still takes new artifacts. */
export function isOpen({ task }: TaskRecord): boolean {
  return !isTerminal(task.status);
}

function exceeded(bound: string, max: number): DeputeError {
  return new DeputeError(
    ErrorReason.LIMIT_EXCEEDED,
    `the artifacts of a task may be at most ${max} (${bound})`,
    {
      metadata: { limit: `artifacts.${bound}`, max: String(max) },
    },
  );
}
