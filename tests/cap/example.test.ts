import { afterEach, describe, expect, test } from "vitest";
import { perform } from "../../examples/team/perform.ts";
import { type Approval, playOf } from "../../examples/team/play.ts";
import { type Cast, example, type Json, secretOf, startCast } from "./cast.ts";

let cast: Cast | undefined;
afterEach(async () => {
  await cast?.stop();
});

/** Runs the specification's example in five processes. Returns the effects of each participant's messages, in order. */
async function run({ url, as }: Cast, approval: Approval): Promise<Record<string, Json[]>> {
  const effects: Record<string, Json[]> = {};
  await perform(playOf("T1", approval), {
    url,
    secretOf,
    startOf: async (id) => (await as(id).inbox()).last_sequence,
    onReport(id, report) {
      effects[id] ??= [];
      if ("sent" in report) effects[id].push(report.answer.effect);
    },
  });
  return effects;
}

const EFFECTS = {
  user: ["said", "said"],
  orchestrator: ["delegated"],
  "pm-1": ["said", "delegated", "said", "completed"],
  "analyst-1": ["said", "submitted", "said"],
};

describe("the text's PM, Analyst and QA, the user and the orchestrator, in separate processes", () => {
  test("play the text message by message, with QA's approval in plain text", async () => {
    cast = await startCast(["--cap-plain-approval"]);
    expect(await run(cast, "words")).toEqual({ ...EFFECTS, "qa-1": ["inquired", "approved"] });
    const { messages } = await cast.as("pm-1").inbox();
    // QA's message comes first. The result follows after QA has approved it.
    expect(messages.slice(-2)).toMatchObject([
      { message: { sender_id: "qa-1", content: "Verified. Analysis is complete and accurate." } },
      { origin: "released", message: { sender_id: "analyst-1", task_id: "T1.1" } },
    ]);
    expect(await statuses(cast)).toEqual({ T1: "completed", "T1.1": "completed", "T1.1.1": "completed" });
  }, 60_000);

  test("play it with an oversight_decision, where plain text approves nothing", async () => {
    cast = await startCast();
    expect(await run(cast, "both")).toEqual({ ...EFFECTS, "qa-1": ["inquired", "said", "approved"] });
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
