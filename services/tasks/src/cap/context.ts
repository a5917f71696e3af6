import type { TasksContext } from "../handlers/context.ts";
import type { WakeUps } from "../wake-ups.ts";
import type { Participants } from "./participants.ts";

/** What CAP is set to. */
export interface CapSettings {
  /** Whether an overseer's plain message to the delegator approves. */
  readonly plainApproval: boolean;
  /** How long a task may take that nothing bounds, milliseconds. */
  readonly taskTimeoutMs: number;
}

/** What CAP's handlers work with. */
export interface CapContext {
  readonly tasks: TasksContext;
  readonly participants: Participants;
  readonly settings: CapSettings;
  readonly inboxWakeUps: WakeUps;
}
