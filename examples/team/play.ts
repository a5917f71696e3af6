import { readFileSync } from "node:fs";

/** A message of CAP, as its text writes it. */
export type CapDocument = Readonly<Record<string, unknown>>;

/** What a participant waits to hear. */
export interface Cue {
  readonly type: string;
  readonly sender: string;
  readonly task: string;
}

/** What a participant does: after it heard what it waits for, it sends. */
export interface Part {
  /** Absent for who begins. */
  readonly after?: Cue;
  readonly send: readonly CapDocument[];
}

/** How QA's approval is given. */
export type Approval =
  /** As the text has it: in plain words, which count with a setting only. */
  | "words"
  /** By an oversight_decision. */
  | "decision"
  /** In words first, and then by a decision. */
  | "both";

const FIXTURES = new URL("../../packages/wire/fixtures/cap/", import.meta.url);

/** A document of the text's. */
export function documentOf(name: string): CapDocument {
  return JSON.parse(readFileSync(new URL(`${name}.json`, FIXTURES), "utf8")) as CapDocument;
}

/** The agents of the text's example. */
export const AGENTS = ["pm-1", "analyst-1", "qa-1"] as const;

/**
 * The text's example, by who says what after what: the user asks the orchestrator, which hands the task to PM, which asks the
 * user and hands a part to the analyst, which hands its result to QA, which inquires and approves; and PM answers.
 *
 * @param root the task's id, in place of the text's T1
 */
export function playOf(root: string, approval: Approval): Readonly<Record<string, readonly Part[]>> {
  const named = (task: unknown) => String(task).replace(/^T1/, root);
  const say = (name: string): CapDocument => {
    const document = documentOf(name);
    return { ...document, task_id: named(document.task_id) };
  };
  const heard = (type: string, sender: string, task: string): Cue => ({ type, sender, task: named(task) });
  const words = say("example-10-approval-in-words");
  const request = {
    type: "message",
    task_id: root,
    sender_id: "user",
    recipient_id: "orchestrator",
    content: "analyze last quarter’s sales trends",
  };
  const decision = {
    type: "oversight_decision",
    task_id: named("T1.1.1"),
    sender_id: "qa-1",
    recipient_id: "analyst-1",
    decision: "approved",
    comment: words.content,
  };
  const approvals = { words: [words], decision: [decision], both: [words, decision] }[approval];
  return {
    user: [
      { send: [request] },
      { after: heard("message", "pm-1", "T1"), send: [say("example-03-answer-of-user")] },
    ],
    orchestrator: [{ after: heard("message", "user", "T1"), send: [say("example-01-delegation-to-pm")] }],
    "pm-1": [
      { after: heard("delegation_notice", "orchestrator", "T1"), send: [say("example-02-question-to-user")] },
      { after: heard("message", "user", "T1"), send: [say("example-04-delegation-to-analyst")] },
      { after: heard("message", "analyst-1", "T1.1"), send: [say("example-06-answer-to-analyst")] },
      // The analyst's result comes when QA has let it pass, and not before.
      { after: heard("message", "analyst-1", "T1.1"), send: [say("example-11-result")] },
    ],
    "analyst-1": [
      { after: heard("delegation_notice", "pm-1", "T1.1"), send: [say("example-05-question-to-pm")] },
      { after: heard("message", "pm-1", "T1.1"), send: [say("example-07-delegation-to-qa")] },
      { after: heard("oversight_inquiry", "qa-1", "T1.1.1"), send: [say("example-09-answer-to-qa")] },
    ],
    "qa-1": [
      {
        after: heard("delegation_notice", "analyst-1", "T1.1.1"),
        send: [say("example-08-oversight-inquiry")],
      },
      { after: heard("message", "analyst-1", "T1.1.1"), send: approvals },
    ],
  };
}
