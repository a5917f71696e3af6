import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { type Cast, example, type Json, secretOf, startCast } from "./cast.ts";
import type { Part } from "./player.ts";

const REQUEST = {
  type: "message",
  task_id: "T1",
  sender_id: "user",
  recipient_id: "orchestrator",
  content: "analyze last quarter’s sales trends",
};

const DECISION = {
  type: "oversight_decision",
  task_id: "T1.1.1",
  sender_id: "qa-1",
  recipient_id: "analyst-1",
  decision: "approved",
  comment: "Verified. Analysis is complete and accurate.",
};

const heard = (type: string, sender: string, task: string) => ({ type, sender, task });

/** Who says what after what: the text's messages, each sent by who sends it there. */
function parts(approval: readonly Json[], release: Part["after"]): Record<string, Part[]> {
  return {
    user: [
      { send: [REQUEST] },
      { after: heard("message", "pm-1", "T1"), send: [example("example-03-answer-of-user")] } as Part,
    ],
    orchestrator: [{ after: heard("message", "user", "T1"), send: [example("example-01-delegation-to-pm")] }],
    "pm-1": [
      {
        after: heard("delegation_notice", "orchestrator", "T1"),
        send: [example("example-02-question-to-user")],
      },
      { after: heard("message", "user", "T1"), send: [example("example-04-delegation-to-analyst")] },
      { after: heard("message", "analyst-1", "T1.1"), send: [example("example-06-answer-to-analyst")] },
      { ...(release && { after: release }), send: [example("example-11-result")] },
    ],
    "analyst-1": [
      { after: heard("delegation_notice", "pm-1", "T1.1"), send: [example("example-05-question-to-pm")] },
      { after: heard("message", "pm-1", "T1.1"), send: [example("example-07-delegation-to-qa")] },
      { after: heard("oversight_inquiry", "qa-1", "T1.1.1"), send: [example("example-09-answer-to-qa")] },
    ],
    "qa-1": [
      {
        after: heard("delegation_notice", "analyst-1", "T1.1.1"),
        send: [example("example-08-oversight-inquiry")],
      },
      { after: heard("message", "analyst-1", "T1.1.1"), send: approval },
    ],
  };
}

let cast: Cast | undefined;
const processes: ChildProcess[] = [];
afterEach(async () => {
  for (const child of processes.splice(0)) child.kill("SIGKILL");
  await cast?.stop();
});

/** Runs the play in five processes, until the orchestrator has heard the result; gives back what each said it did. */
async function perform({ url }: Cast, play: Record<string, Part[]>): Promise<Record<string, Json[]>> {
  const lines: Record<string, Json[]> = {};
  await new Promise<void>((resolve, reject) => {
    for (const [id, part] of Object.entries(play)) {
      const script = fileURLToPath(new URL("player.ts", import.meta.url));
      const child = spawn(process.execPath, [script, url, id, secretOf(id)], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      processes.push(child);
      child.stdin.end(JSON.stringify(part));
      child.once("exit", (code) => reject(new Error(`${id} ended with ${code}`)));
      lines[id] = [];
      createInterface(child.stdout).on("line", (line) => {
        const told = JSON.parse(line);
        lines[id]?.push(told);
        if (told.status !== undefined && told.status !== 201) reject(new Error(line));
        if (id === "orchestrator" && told.heard === "message" && told.from === "pm-1") resolve();
      });
    }
  });
  return lines;
}

const EFFECTS = (qa: string) => ({
  user: ["said", "said"],
  orchestrator: ["delegated"],
  "pm-1": ["said", "delegated", "said", "completed"],
  "analyst-1": ["said", "submitted", "said"],
  "qa-1": ["inquired", qa],
});

const effectsOf = (lines: Record<string, Json[]>) =>
  Object.fromEntries(
    Object.entries(lines).map(([id, told]) => [
      id,
      told.flatMap(({ answer }) => (answer ? [answer.effect] : [])),
    ]),
  );

describe("the text's PM, Analyst and QA, the user and the orchestrator, each in a process of its own", () => {
  test("play the text message by message, with QA's approval in plain words", async () => {
    cast = await startCast(["--cap-plain-approval"]);
    const play = parts([example("example-10-approval-in-words")], heard("message", "qa-1", "T1.1.1"));
    const lines = await perform(cast, play);
    // The last to be heard may be the first to be told.
    await expect.poll(() => effectsOf(lines)).toEqual(EFFECTS("approved"));
    const { messages } = await cast.as("pm-1").inbox();
    // What QA says comes first, and the result that it lets pass comes with it.
    expect(messages.slice(-2)).toMatchObject([
      { message: { sender_id: "qa-1", content: "Verified. Analysis is complete and accurate." } },
      { origin: "released", message: { sender_id: "analyst-1", task_id: "T1.1" } },
    ]);
    expect(await statuses(cast)).toEqual({ T1: "completed", "T1.1": "completed", "T1.1.1": "completed" });
  }, 60_000);

  test("play it with an oversight_decision, where plain words approve nothing", async () => {
    cast = await startCast();
    const words = example("example-10-approval-in-words");
    // PM goes on when the analyst's result reaches it, and not before.
    const lines = await perform(cast, parts([words, DECISION], heard("message", "analyst-1", "T1.1")));
    const effects = { ...EFFECTS("said"), "qa-1": ["inquired", "said", "approved"] };
    await expect.poll(() => effectsOf(lines)).toEqual(effects);
    const { messages } = await cast.as("pm-1").inbox();
    expect(messages.at(-1)).toMatchObject({
      origin: "released",
      message: { attachments: example("example-07-delegation-to-qa").attachments },
    });
    expect(await statuses(cast)).toEqual({ T1: "completed", "T1.1": "completed", "T1.1.1": "completed" });
    const text = (await cast.as("user").ask("GET", "/cap/tasks/T1?format=text")).body as string;
    expect(text.split("\n").map((line) => line.replace(/\S+Z /, "").trim())).toEqual(
      expect.arrayContaining([
        "T1 orchestrator -> pm-1 (completed)",
        "T1.1 pm-1 -> analyst-1 (completed, overseer qa-1)",
        "T1.1.1 analyst-1 -> qa-1 (completed, reviews T1.1)",
        "oversight_decision qa-1 -> analyst-1 [approved]",
      ]),
    );
  }, 60_000);
});

async function statuses({ as }: Cast): Promise<Record<string, string>> {
  const flat = (task: Json): [string, string][] => [[task.task_id, task.status], ...task.tasks.flatMap(flat)];
  return Object.fromEntries(flat(await as("orchestrator").lineage("T1")));
}
