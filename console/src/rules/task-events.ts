import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { TaskFailure } from "@depute/contracts/depute/tasks/v1/task_pb";
import { dollars } from "./money.ts";
import type { Tone } from "./task-status.ts";

/** The words that describe an event in the timeline. */
export interface EventLine {
  readonly title: string;
  /** Further facts as one text; empty if there are none. The text may come from untrusted parties. */
  readonly detail: string;
  readonly tone: Tone;
}

/** Returns the words that describe a task's event. */
export function eventLine({ payload }: TaskEvent): EventLine {
  switch (payload.case) {
    case "created":
      return line("Created", `${payload.value.delegator} delegates to ${payload.value.agentId}`);
    case "accepted":
      return line("Accepted", `attempt ${payload.value.attempt}, worker ${payload.value.worker}`, "active");
    case "started":
      return line("Started", `attempt ${payload.value.attempt}`, "active");
    case "progress": {
      const { processed, total, message } = payload.value;
      return line(
        "Progress",
        join(total > 0 ? `${processed} of ${total}` : String(processed), message),
        "active",
      );
    }
    case "partial":
      return line("Partial result", payload.value.withheld ? "withheld from this caller" : "", "active");
    case "requeued": {
      const { cause, attempt, attemptCounted } = payload.value;
      const count = attemptCounted ? `attempt ${attempt} is used up` : "the attempt does not count";
      return line("Back in the queue", join(failureText(cause), count), "waiting");
    }
    case "completed": {
      const { usage } = payload.value;
      const cost = usage === undefined ? "" : `${usage.tokensUsed} tokens, ${dollars(usage.costMicrocents)}`;
      return line("Completed", cost, "good");
    }
    case "failed":
      return line("Failed", failureText(payload.value), "bad");
    case "rejected":
      return line("Rejected", failureText(payload.value), "bad");
    case "expired":
      return line("Expired", failureText(payload.value), "bad");
    case "revoked":
      return line("Revoked", failureText(payload.value), "bad");
    case "cancelled":
      return line("Cancelled", payload.value.reason);
    case "cancellationRequested":
      return line("Cancellation requested", payload.value.reason, "waiting");
    case "checkpointed":
      return line("Checkpoint saved", `attempt ${payload.value.attempt}`, "active");
    case "suspensionRequested":
      return line("Suspension requested", payload.value.reason, "waiting");
    case "suspended":
      return line("Suspended", payload.value.reason, "waiting");
    case "resumed":
      return line(
        "Resumed",
        payload.value.fromCheckpoint ? "from the checkpoint" : "from the start",
        "active",
      );
    case "inputRequired":
      return line("Question", payload.value.prompt, "waiting");
    case "inputProvided":
      return line("Answered", "", "active");
    case "submitted":
      return line("Submitted for review", payload.value.overseerId, "waiting");
    case "changesRequested":
      return line("Changes requested", payload.value.comment, "waiting");
    case "estimated":
      return line("Estimate", payload.value.note);
    case "deadlineMoved":
      return line("Deadline moved", "");
    default:
      return line("Event of a newer platform", "");
  }
}

/** Returns the reason and the message of a failure as one text. */
export function failureText(failure: TaskFailure | undefined): string {
  return failure === undefined ? "" : join(failure.reason, failure.message);
}

function line(title: string, detail: string, tone: Tone = "neutral"): EventLine {
  return { title, detail, tone };
}

function join(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(": ");
}
