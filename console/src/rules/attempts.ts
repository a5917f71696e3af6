import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { Tone } from "./task-status.ts";

/** One attempt at a task: its worker and its outcome, e.g. `Completed`, or `Holds the lease` for a running attempt. */
export interface Attempt {
  readonly number: number;
  readonly worker: string;
  readonly outcome: string;
  readonly tone: Tone;
}

/** Derives the attempts at a task from the task's events. */
export function attemptsOf(events: readonly TaskEvent[]): Attempt[] {
  const attempts: Attempt[] = [];
  const end = (outcome: string, tone: Tone) => {
    const last = attempts.at(-1);
    if (last?.outcome === HELD) attempts.splice(-1, 1, { ...last, outcome, tone });
  };
  for (const { payload } of events) {
    switch (payload.case) {
      case "accepted":
        attempts.push({
          number: payload.value.attempt,
          worker: payload.value.worker,
          outcome: HELD,
          tone: "active",
        });
        break;
      case "requeued":
        end(payload.value.cause?.reason || "Released", "waiting");
        break;
      case "suspended":
        end("Suspended", "waiting");
        break;
      case "submitted":
        end("Submitted", "waiting");
        break;
      case "completed":
        end("Completed", "good");
        break;
      case "failed":
      case "rejected":
      case "expired":
      case "revoked":
        end(payload.value.reason || "Failed", "bad");
        break;
      case "cancelled":
        end("Cancelled", "neutral");
        break;
    }
  }
  return attempts;
}

const HELD = "Holds the lease";
