import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError, ErrorReason, invalid } from "@depute/core";
import type { TaskRecord } from "./record.ts";
import { isTerminal } from "./state-machine.ts";
import { isDelegate, isDelegator, isVisible, type Viewer } from "./visibility.ts";

/** Artifacts that a task may have, and their bytes together. */
export const MAX_ARTIFACTS = 100;
export const MAX_ARTIFACT_BYTES = 256 * 1024 * 1024;

/** An artifact as it is kept. */
export interface ArtifactRecord {
  readonly id: string;
  readonly taskId: string;
  readonly name: string;
  readonly mediaType: string;
  /** Bytes. */
  readonly size: number;
  /** 64 hex digits. */
  readonly sha256: string;
  /** Bytes that are there. */
  readonly written: number;
  readonly isWhole: boolean;
  readonly maker: string;
  /** Whether the delegate made it. */
  readonly isResult: boolean;
  /** Epoch milliseconds. */
  readonly createMs: number;
}

/** Whether a viewer may know of an artifact: what is to be looked at by an overseer first is hidden until it is approved. */
export function isArtifactVisible(viewer: Viewer, record: TaskRecord, artifact: ArtifactRecord): boolean {
  if (!isVisible(viewer, record)) return false;
  const { task } = record;
  const isHeld = artifact.isResult && task.overseerId !== "" && task.status !== TaskStatus.COMPLETED;
  return !isHeld || !isDelegator(viewer, record) || isDelegate(viewer, record);
}

/**
 * Refuses another artifact of a task that has enough.
 *
 * @throws DeputeError LIMIT_EXCEEDED
 */
export function requireRoom(held: { number: number; bytes: number }, size: number): void {
  if (held.number >= MAX_ARTIFACTS) throw exceeded("number", MAX_ARTIFACTS);
  if (held.bytes + size > MAX_ARTIFACT_BYTES) throw exceeded("bytes", MAX_ARTIFACT_BYTES);
}

/**
 * How many of the bytes that are brought are new.
 *
 * @throws DeputeError INVALID_REQUEST for bytes after a gap, or beyond the artifact's size
 */
export function newBytes({ written, size }: ArtifactRecord, offset: number, length: number): number {
  if (offset > written) throw invalid("offset", `leaves a gap after the ${written} bytes that are there`);
  if (offset + length > size) throw invalid("data", `reaches beyond the artifact's ${size} bytes`);
  return Math.max(0, offset + length - written);
}

/** The refusal of an artifact that is not there for this caller. */
export function artifactNotFound(artifact: string): DeputeError {
  return new DeputeError(ErrorReason.ARTIFACT_NOT_FOUND, "no such artifact", { metadata: { artifact } });
}

/** Whether something can still be added to a task. */
export function isOpen({ task }: TaskRecord): boolean {
  return !isTerminal(task.status);
}

function exceeded(what: string, max: number): DeputeError {
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, `the task's artifacts are more than ${max} (${what})`, {
    metadata: { limit: `artifacts.${what}`, max: String(max) },
  });
}
