import { readFileSync } from "node:fs";

/** A message as CAP's specification writes it. */
export type CapDocument = Readonly<Record<string, unknown>>;

/** The message that a participant waits for. */
export interface Cue {
  readonly type: string;
  readonly sender: string;
  readonly task: string;
}

/** One step of a participant, which sends its messages after the awaited message has arrived. */
export interface Part {
  /** The awaited message; absent for the first step of the play. */
  readonly after?: Cue;
  readonly send: readonly CapDocument[];
}

/** The way in which QA approves the result. */
export type Approval =
  /**
   * In plain words, as in CAP's specification. The platform accepts them as a decision only if its settings allow that.
   */
  | "words"
  /** By an oversight_decision. */
  | "decision"
  /** In plain words first, and then by an oversight_decision. */
  | "both";

const FIXTURES = new URL("../../packages/wire/fixtures/cap/", import.meta.url);

/** Reads a document of CAP's specification. */
export function documentOf(name: string): CapDocument {
  return JSON.parse(readFileSync(new URL(`${name}.json`, FIXTURES), "utf8")) as CapDocument;
}

/** The agents in the example of CAP's specification. */
export const AGENTS = ["pm-1", "analyst-1", "qa-1"] as const;

/**
 * The example of CAP's specification, as the steps of each participant. The user delegates to the orchestrator,
 * which delegates to PM. PM asks the user and delegates to the analyst, which passes its result to QA. QA
 * inquires and approves, and PM answers.
 *
 * @param root the task's id, in place of T1 in the specification
 */
export function playOf(root: string, approval: Approval): Readonly<Record<string, readonly Part[]>> {
  const taskName = (task: unknown) => String(task).replace(/^T1/, root);
  const say = (name: string): CapDocument => {
    const document = documentOf(name);
    return { ...document, task_id: taskName(document.task_id) };
  };
  const cueOf = (type: string, sender: string, task: string): Cue => ({ type, sender, task: taskName(task) });
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
    task_id: taskName("T1.1.1"),
    sender_id: "qa-1",
    recipient_id: "analyst-1",
    decision: "approved",
    comment: words.content,
  };
  const approvals = { words: [words], decision: [decision], both: [words, decision] }[approval];
  return {
    user: [
      { send: [request] },
      { after: cueOf("message", "pm-1", "T1"), send: [say("example-03-answer-of-user")] },
    ],
    orchestrator: [{ after: cueOf("message", "user", "T1"), send: [say("example-01-delegation-to-pm")] }],
    "pm-1": [
      { after: cueOf("delegation_notice", "orchestrator", "T1"), send: [say("example-02-question-to-user")] },
      { after: cueOf("message", "user", "T1"), send: [say("example-04-delegation-to-analyst")] },
      { after: cueOf("message", "analyst-1", "T1.1"), send: [say("example-06-answer-to-analyst")] },
      // The analyst's second message is its result, which PM receives only after QA has approved it.
      { after: cueOf("message", "analyst-1", "T1.1"), send: [say("example-11-result")] },
    ],
    "analyst-1": [
      { after: cueOf("delegation_notice", "pm-1", "T1.1"), send: [say("example-05-question-to-pm")] },
      { after: cueOf("message", "pm-1", "T1.1"), send: [say("example-07-delegation-to-qa")] },
      { after: cueOf("oversight_inquiry", "qa-1", "T1.1.1"), send: [say("example-09-answer-to-qa")] },
    ],
    "qa-1": [
      {
        after: cueOf("delegation_notice", "analyst-1", "T1.1.1"),
        send: [say("example-08-oversight-inquiry")],
      },
      { after: cueOf("message", "analyst-1", "T1.1.1"), send: approvals },
    ],
  };
}
