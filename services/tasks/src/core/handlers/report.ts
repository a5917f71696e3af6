import { create, toBinary } from "@bufbuild/protobuf";
import { TaskPartialSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskProgressSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Lease, WorkerDirective } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { requestIdReused } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import type { Decide } from "../engine/engine.ts";
import { advance, extendLease } from "../rules/advance.ts";
import type { TaskPayload } from "../rules/apply-event.ts";
import { directiveOf } from "../rules/directive.ts";
import { requireLease } from "../rules/lease.ts";
import type { TaskRecord } from "../rules/record.ts";
import { requireDelegate, type Viewer } from "../rules/visibility.ts";
import { findReport, insertReport } from "../store/request-rows.ts";
import type { TasksContext } from "./context.ts";

/** A worker's report: progress or a preliminary result. */
export interface Report {
  readonly lease: Lease;
  /** The id of the report. If empty, each repeated call adds a further report. */
  readonly requestId: string;
  readonly payload: Extract<TaskPayload, { case: "progress" | "partial" }>;
}

/** The sequence of a report's event, and the next directive. */
export interface Reported {
  readonly sequence: bigint;
  readonly directive: WorkerDirective;
}

/**
 * Appends a report to the log and extends the lease. If a report with this request id exists, appends nothing.
 *
 * @throws DeputeError TASK_NOT_FOUND, LEASE_LOST, TASK_STATE_CONFLICT, REQUEST_ID_REUSED
 */
export async function report(
  { engine }: TasksContext,
  viewer: Viewer,
  { lease, requestId, payload }: Report,
): Promise<Reported> {
  const key = { taskId: lease.taskId, epoch: Number(lease.epoch), requestId };
  const digest = requestId === "" ? "" : digestOf(payload);
  let sequence = 0n;
  const decide: Decide = async (before, nowMs, tx) => {
    requireDelegate(viewer, before);
    requireLease(before, lease);
    const earlierReport = requestId === "" ? undefined : await findReport(tx, key);
    if (earlierReport !== undefined) {
      if (earlierReport.digest !== digest) throw requestIdReused(requestId, "report");
      sequence = BigInt(earlierReport.sequence);
      return { record: extendLease(before, nowMs), events: [] };
    }
    const visible = withheld(before, payload);
    const { record, events } = advance(before, { payload: visible, by: "worker" }, nowMs);
    sequence = record.task.lastSequence;
    if (requestId !== "") await insertReport(tx, key, digest, sequence);
    return { record: extendLease(record, nowMs), events };
  };
  const record = await engine.change(lease.taskId, decide, { isRepeatable: true });
  return { sequence, directive: directiveOf(record, lease).directive };
}

/**
 * If the task has an overseer, removes the content of a preliminary result. The delegator must not see unapproved
 * output.
 */
function withheld({ task }: TaskRecord, payload: Report["payload"]): Report["payload"] {
  if (task.overseerId === "" || payload.case !== "partial") return payload;
  const { resolvedLevel } = payload.value;
  return { case: "partial", value: create(TaskPartialSchema, { resolvedLevel, withheld: true }) };
}

function digestOf(payload: Report["payload"]): string {
  return payload.case === "progress"
    ? sha256Hex(toBinary(TaskProgressSchema, payload.value))
    : sha256Hex(toBinary(TaskPartialSchema, payload.value));
}
