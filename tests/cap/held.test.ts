import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Cast, example, type Json, startCast } from "./cast.ts";

/** Submits the analyst's result on a separate task tree, where it waits for review. */
async function underReview(cast: Cast, root: string): Promise<Json> {
  const document = (name: string): Json => {
    const message = example(name);
    return { ...message, task_id: String(message.task_id).replace(/^T1/, root) };
  };
  const [toPm, toAnalyst, toQa] = [
    "01-delegation-to-pm",
    "04-delegation-to-analyst",
    "07-delegation-to-qa",
  ].map((name) => document(`example-${name}`));
  const result = {
    ...toQa,
    context_summary: `The regional report of ${root} is complete; please check its sources and totals.`,
    attachments: [
      { type: "file", path: `/tmp/${root}.md` },
      { type: "python_object", object: { root, total: 7 } },
    ],
  };
  for (const message of [toPm, toAnalyst, result]) {
    expect(await cast.as(message.sender_id).send(message)).toMatchObject({ status: 201 });
  }
  return result;
}

const say = (task_id: string, route: string, more: object) => {
  const [sender_id = "", recipient_id = ""] = route.split(" > ");
  return { type: "message", task_id, sender_id, recipient_id, content: "see here", ...more };
};

/** Returns a lineage's messages that are marked `carries_held_result`, as `SENDER > RECIPIENT HELD_TASK`, by number. */
async function marked(cast: Cast, root: string): Promise<string[]> {
  const all = (task: Json): Json[] => [...task.messages, ...task.tasks.flatMap(all)];
  return all(await cast.as("orchestrator").lineage(root))
    .filter(({ carries_held_result }) => carries_held_result === true)
    .sort((a, b) => a.number - b.number)
    .map((one) => `${one.sender_id} > ${one.recipient_id} ${one.held_task_id ?? ""}`);
}

describe("plain messages that carry a held result", () => {
  let cast: Cast;
  beforeAll(async () => {
    cast = await startCast();
  });
  afterAll(() => cast.stop());

  test("are marked in the lineage if a sender sends them past the overseer, and others are not", async () => {
    const { attachments, context_summary: content } = await underReview(cast, "K1");
    const send = async (message: Json) =>
      expect(await cast.as(message.sender_id).send(message)).toMatchObject({
        status: 201,
        body: { effect: "said" },
      });
    await send(say("K1.1", "analyst-1 > pm-1", { content: "I wait for QA." }));
    await send(say("K1.1", "analyst-1 > qa-1", { attachments }));
    await send(say("K1.1.1", "qa-1 > analyst-1", { content }));
    expect(await marked(cast, "K1")).toEqual([]);
    await send(say("K1.1", "analyst-1 > pm-1", { attachments }));
    await send(say("K1", "analyst-1 > user", { content: `Already: ${content}` }));
    await send(say("K1.1", "qa-1 > pm-1", { attachments: attachments.slice(0, 1) }));
    expect(await marked(cast, "K1")).toEqual([
      "analyst-1 > pm-1 K1.1",
      "analyst-1 > user K1.1",
      "qa-1 > pm-1 K1.1",
    ]);
    const { body } = await cast.as("orchestrator").ask("GET", "/cap/tasks/K1?format=text");
    expect(body).toMatch(/message analyst-1 -> pm-1 \[said, carries the held result of K1\.1\]/);
  });

  test("are marked in another conversation too, which does not name the task", async () => {
    const { attachments } = await underReview(cast, "K2");
    await cast.as("analyst-1").send(say("K2-aside", "analyst-1 > stranger-1", { attachments }));
    expect(await marked(cast, "K2-aside")).toEqual(["analyst-1 > stranger-1 "]);
  });

  test("carry no held result any more after the overseer's decision", async () => {
    const { attachments } = await underReview(cast, "K3");
    const decision = { decision: "approved", comment: "" };
    const decided = { ...say("K3.1", "qa-1 > analyst-1", decision), type: "oversight_decision" };
    const { content: _, ...message } = decided;
    expect(await cast.as("qa-1").send(message)).toMatchObject({ body: { effect: "approved" } });
    await cast.as("analyst-1").send(say("K3.1", "analyst-1 > pm-1", { attachments }));
    expect(await marked(cast, "K3")).toEqual([]);
  });
});

describe("with the setting that refuses them", () => {
  let cast: Cast;
  beforeAll(async () => {
    cast = await startCast(["--cap-refuse-held-results"]);
  });
  afterAll(() => cast.stop());

  test("they are refused, and only the overseer gets them", async () => {
    const { attachments } = await underReview(cast, "K4");
    for (const [task, route] of [
      ["K4.1", "analyst-1 > pm-1"],
      ["K4", "analyst-1 > user"],
      ["K4-aside", "analyst-1 > stranger-1"],
      ["K4.1", "qa-1 > pm-1"],
    ] as const) {
      const message = say(task, route, { attachments });
      expect(await cast.as(message.sender_id).send(message)).toMatchObject({
        status: 403,
        body: { reason: "MESSAGE_NOT_ALLOWED", metadata: { rule: "held_result", task: "K4.1" } },
      });
    }
    const sent = say("K4.1", "analyst-1 > pm-1", { content: "I wait for QA." });
    expect(await cast.as("analyst-1").send(sent)).toMatchObject({ status: 201 });
    const answer = say("K4.1", "analyst-1 > qa-1", { attachments });
    expect(await cast.as("analyst-1").send(answer)).toMatchObject({ status: 201 });
    const lineage = await cast.as("orchestrator").lineage("K4");
    expect(lineage.tasks[0].messages).toContainEqual(
      expect.objectContaining({
        sender_id: "analyst-1",
        recipient_id: "pm-1",
        effect: "refused",
        error_code: 403,
      }),
    );
  });
});
