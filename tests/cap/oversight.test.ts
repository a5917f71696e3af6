import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Cast, example, type Json, startCast } from "./cast.ts";

/** Returns the messages of the specification's example in order, with another task name. */
function script(root: string) {
  const document = (name: string): Json => {
    const message = example(name);
    return { ...message, task_id: String(message.task_id).replace(/^T1/, root) };
  };
  return {
    toPm: document("example-01-delegation-to-pm"),
    question: document("example-02-question-to-user"),
    answer: document("example-03-answer-of-user"),
    toAnalyst: document("example-04-delegation-to-analyst"),
    followUp: document("example-05-question-to-pm"),
    clarified: document("example-06-answer-to-analyst"),
    toQa: document("example-07-delegation-to-qa"),
    inquiry: document("example-08-oversight-inquiry"),
    confirmed: document("example-09-answer-to-qa"),
    approval: document("example-10-approval-in-words"),
    result: document("example-11-result"),
    decision: (decision: string, comment = "as it should be") => ({
      type: "oversight_decision",
      task_id: `${root}.1.1`,
      sender_id: "qa-1",
      recipient_id: "analyst-1",
      decision,
      comment,
    }),
  };
}

/** The limit is generous, because test machines may be busy. */
const SOON = { timeout: 15_000 };

let cast: Cast;
const send = async (message: Json) => {
  const answer = await cast.as(message.sender_id).send(message);
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};
const refused = async (message: Json) => {
  const { status, body } = await cast.as(message.sender_id).send(message);
  expect(body).toMatchObject({ type: "error_response", error_code: status });
  return { code: status, reason: body.reason, rule: body.metadata?.rule };
};
const statuses = async (root: string): Promise<Record<string, string>> => {
  const flat = (task: Json): [string, string][] => [[task.task_id, task.status], ...task.tasks.flatMap(flat)];
  return Object.fromEntries(flat(await cast.as("orchestrator").lineage(root)));
};
/** Returns the messages about a task tree in an agent's inbox, each as `ORIGIN TYPE SENDER: WORDS`. */
const inboxLines = async (id: string, root: string): Promise<string[]> =>
  (await cast.as(id).inbox("?limit=1000")).messages
    .filter(({ message }: Json) => String(message.task_id).split(".")[0] === root)
    .map(({ message, origin }: Json) => {
      const words =
        message.content ??
        message.context_summary ??
        message.comment ??
        message.inquiry ??
        message.error_code;
      return `${origin} ${message.type} ${message.sender_id}: ${String(words).slice(0, 30)}`;
    });
/** Plays the messages up to the message that submits the result to QA. */
const upToReview = async (root: string) => {
  const s = script(root);
  for (const message of [s.toPm, s.question, s.answer, s.toAnalyst, s.followUp, s.clarified, s.toQa])
    await send(message);
  return s;
};

beforeAll(async () => {
  cast = await startCast(["--bounds-operators", "an-operator"]);
});
afterAll(() => cast.stop());

describe("the text's example, approved by an oversight_decision", () => {
  test("runs message by message, and the result reaches PM only then", async () => {
    const s = script("E1");
    expect(await send(s.toPm)).toMatchObject({ effect: "delegated", status: "pending" });
    expect(await send(s.question)).toMatchObject({ effect: "said", status: "running" });
    await send(s.answer);
    expect(await send(s.toAnalyst)).toMatchObject({ effect: "delegated" });
    // A message from the overseen agent to its delegator submits no result.
    expect(await send(s.followUp)).toMatchObject({ effect: "said", status: "running" });
    await send(s.clarified);
    expect(await send(s.toQa)).toMatchObject({ effect: "submitted" });
    expect(await statuses("E1")).toEqual({ E1: "running", "E1.1": "in_review", "E1.1.1": "pending" });
    expect(await send(s.inquiry)).toMatchObject({ effect: "inquired", status: "running" });
    await send(s.confirmed);
    // Without the setting, words in a message approve nothing.
    expect(await send(s.approval)).toMatchObject({ effect: "said" });
    expect(await statuses("E1")).toMatchObject({ "E1.1": "in_review" });
    const before = await inboxLines("pm-1", "E1");
    expect(await send(s.decision("approved"))).toMatchObject({ effect: "approved" });
    expect(await statuses("E1")).toEqual({ E1: "running", "E1.1": "completed", "E1.1.1": "completed" });
    const after = await inboxLines("pm-1", "E1");
    expect(after.slice(before.length)).toEqual([
      "released message analyst-1: Analysis complete; please veri",
    ]);
    expect(await send(s.result)).toMatchObject({ effect: "completed", status: "completed" });
    expect(await inboxLines("orchestrator", "E1")).toEqual([
      "sender message pm-1: Here is the verified Q4 sales ",
    ]);
    const { messages } = await cast.as("pm-1").inbox("?limit=1000");
    const released = messages.findLast(({ message }: Json) => message.task_id === "E1.1");
    expect(released.message.attachments).toEqual(s.toQa.attachments);
  });

  test("returns to the analyst when changes are requested, and is submitted again under another id", async () => {
    const s = await upToReview("E2");
    expect(await refused(s.decision("changes_requested", " "))).toMatchObject({ code: 400 });
    expect(await send(s.decision("changes_requested", "the total for Europe"))).toMatchObject({
      effect: "changes_requested",
    });
    expect(await statuses("E2")).toMatchObject({ "E2.1": "pending", "E2.1.1": "completed" });
    expect((await inboxLines("analyst-1", "E2")).at(-1)).toBe(
      "sender oversight_decision qa-1: the total for Europe",
    );
    expect(await send({ ...s.toQa, task_id: "E2.1.2" })).toMatchObject({ effect: "submitted" });
    expect(await send({ ...s.decision("approved"), task_id: "E2.1" })).toMatchObject({ effect: "approved" });
    expect(await statuses("E2")).toMatchObject({ "E2.1": "completed", "E2.1.2": "completed" });
  });

  test("fails when it is rejected, and the waiting delegator gets a code", async () => {
    const s = await upToReview("E3");
    await send(s.decision("rejected", "made up"));
    expect(await statuses("E3")).toMatchObject({ "E3.1": "failed" });
    expect((await inboxLines("pm-1", "E3")).at(-1)).toBe("platform error_response depute: 422");
    expect((await inboxLines("orchestrator", "E3")).at(-1)).toBe("platform error_response depute: 422");
  });

  test("is decided at the queue of reviews as well, with the same effect", async () => {
    const s = await upToReview("E4");
    await send(s.inquiry);
    await send(s.confirmed);
    const qa = cast.as("qa-1");
    const { body } = await qa.ask("GET", "/cap/reviews");
    const review = body.reviews.at(-1);
    // The review also contains the questions and answers that were sent as messages.
    await expect
      .poll(async () => (await qa.ask("GET", `/cap/reviews/${review.review_id}`)).body.inquiries, SOON)
      .toMatchObject([{ number: 1, inquiry: s.inquiry.inquiry, answer: s.confirmed.content }]);
    const decided = await qa.ask("POST", `/cap/reviews/${review.review_id}/decision`, {
      decision: "approved",
    });
    expect(decided).toMatchObject({ status: 200, body: { state: "approved" } });
    await expect
      .poll(() => statuses("E4"), SOON)
      .toMatchObject({ "E4.1": "completed", "E4.1.1": "completed" });
    expect((await inboxLines("pm-1", "E4")).at(-1)).toMatch(/^released message analyst-1/);
    expect((await inboxLines("analyst-1", "E4")).at(-1)).toMatch(/^platform oversight_decision qa-1/);
    expect(await refused(script("E4").decision("rejected", "no"))).toMatchObject({ code: 409 });
  });

  test("is completed by a message, and still held", async () => {
    const s = script("E5");
    for (const message of [s.toPm, s.toAnalyst]) await send(message);
    const resultMessage = {
      ...s.followUp,
      task_id: "E5.1",
      content: "the report",
      attachments: [],
      completes_task: true,
    };
    expect(await send(resultMessage)).toMatchObject({ effect: "submitted", status: "in_review" });
    expect(await inboxLines("pm-1", "E5")).toHaveLength(1);
    expect((await inboxLines("qa-1", "E5")).at(-1)).toBe("platform message analyst-1: the report");
    // While the result is in review, the delegator sees no part of it anywhere.
    for (const path of ["/cap/tasks/E5", "/cap/tasks/E5?format=text", "/cap/tasks/E5.1/conversations/pm-1"]) {
      const { status, body } = await cast.as("pm-1").ask("GET", path);
      expect(status).toBe(200);
      expect(JSON.stringify(body)).not.toContain("the report");
    }
    await send({ ...s.decision("approved"), task_id: "E5.1" });
    expect((await inboxLines("pm-1", "E5")).at(-1)).toBe("released message analyst-1: the report");
  });
});

describe("a broken rule", () => {
  let s: ReturnType<typeof script>;
  beforeAll(async () => {
    s = await upToReview("R1");
  });

  test.each<[string, (s: ReturnType<typeof script>) => Json, object]>([
    [
      "a handoff to a stranger",
      (s) => ({ ...s.toAnalyst, task_id: "R1.2", recipient_id: "stranger-1" }),
      { code: 403, reason: "MESSAGE_NOT_ALLOWED", rule: "not_allowed" },
    ],
    [
      "an approval by the wrong agent",
      (s) => ({ ...s.decision("approved"), sender_id: "pm-1" }),
      { code: 403, reason: "MESSAGE_NOT_ALLOWED", rule: "overseer" },
    ],
    [
      "an approval by the author",
      (s) => ({ ...s.decision("approved"), sender_id: "analyst-1", recipient_id: "pm-1" }),
      { code: 403, rule: "overseer" },
    ],
    [
      "a foreign tool result",
      (s) => ({
        ...s.confirmed,
        attachments: [{ type: "tool_call_result", server_id: "PayrollServer", tool: "read", result: {} }],
      }),
      { code: 403, rule: "tool_result" },
    ],
    [
      "a cycle",
      (s) => ({ ...s.toQa, task_id: "R1.1.1.1", sender_id: "qa-1", recipient_id: "pm-1" }),
      { code: 409, reason: "TASK_CYCLE" },
    ],
    [
      "a delegation by the user",
      (s) => ({ ...s.toPm, task_id: "R2", sender_id: "user" }),
      { code: 403, rule: "role" },
    ],
    ["a root task by an agent", (s) => ({ ...s.toAnalyst, task_id: "R1x" }), { code: 403, rule: "root" }],
    [
      "a child task of a task that another agent holds",
      (s) => ({ ...s.toAnalyst, task_id: "R1.1.5" }),
      { code: 403, rule: "holder" },
    ],
    [
      "a delegation without a reason",
      (s) => ({ ...s.toAnalyst, task_id: "R1.3", context_summary: " " }),
      { code: 422, reason: "MESSAGE_RULE_NOT_MET", rule: "no_justification" },
    ],
    [
      "an id in use",
      (s) => ({ ...s.toAnalyst, context_summary: "other" }),
      { code: 409, reason: "TASK_ID_TAKEN" },
    ],
    [
      "an inquiry by an agent that is not the overseer",
      (s) => ({ ...s.inquiry, sender_id: "pm-1" }),
      { code: 403, rule: "overseer" },
    ],
    ["a delegation while the result is reviewed", (s) => ({ ...s.toQa, task_id: "R1.1.7" }), { code: 409 }],
    [
      "a review that a plain message completes",
      (s) => ({ ...s.approval, recipient_id: "analyst-1", completes_task: true }),
      { code: 422, rule: "review" },
    ],
  ])("is refused with its code, and recorded in the lineage: %s", async (_name, message, refusal) => {
    const answer = await refused(message(s));
    expect(answer).toMatchObject(refusal);
    if (answer.code === 404) return;
    const all = (task: Json): Json[] => [...task.messages, ...task.tasks.flatMap(all)];
    const entries = all(await cast.as("orchestrator").lineage("R1"));
    expect(entries.filter(({ effect }) => effect === "refused").at(-1) ?? {}).toMatchObject({
      effect: "refused",
    });
    if (message(s).task_id.startsWith("R1.")) {
      expect(entries).toContainEqual(
        expect.objectContaining({
          effect: "refused",
          error_code: answer.code,
          sender_id: message(s).sender_id,
        }),
      );
    }
  });

  test("leaves the lineage unchanged, as text and as Mermaid", async () => {
    const { ask } = cast.as("orchestrator");
    const text = await ask("GET", "/cap/tasks/R1.1", undefined, { accept: "text/plain" });
    expect(text.body).toContain("R1.1 pm-1 -> analyst-1 (in_review, overseer qa-1)");
    expect(text.body).toMatch(/delegation_notice pm-1 -> stranger-1 \[refused 403\]/);
    const mermaid = await ask("GET", "/cap/tasks/R1?format=mermaid");
    expect(mermaid.body).toMatch(/^flowchart TD\n {2}t0\["R1<br\/>pm-1<br\/>running"\]/);
    expect((await ask("GET", "/cap/tasks/R1?format=html")).body).toContain('<pre class="mermaid">');
    expect(await cast.as("stranger-1").ask("GET", "/cap/tasks/R1")).toMatchObject({ status: 404 });
  });
});

describe("an error_response", () => {
  const error = (task_id: string, error_code: number) => ({
    type: "error_response",
    task_id,
    sender_id: "analyst-1",
    recipient_id: "pm-1",
    error_code,
    error_message: "MCP timeout.",
  });

  test("of a temporary kind is retried by the same agent, three times in all, and then escalated", async () => {
    const s = script("X1");
    for (const message of [s.toPm, s.toAnalyst]) await send(message);
    expect(await send(error("X1.1", 504))).toMatchObject({ effect: "retried", status: "pending" });
    expect((await inboxLines("analyst-1", "X1")).length).toBe(2);
    expect(await send(error("X1.1", 504))).toMatchObject({ effect: "retried" });
    expect(await send(error("X1.1", 504))).toMatchObject({ effect: "escalated", status: "failed" });
    expect((await inboxLines("orchestrator", "X1")).at(-1)).toBe("sender error_response analyst-1: 504");
    expect((await inboxLines("pm-1", "X1")).filter((line) => line.includes("504"))).toHaveLength(3);
  });

  test("of an unlisted code is escalated at once", async () => {
    const s = script("X2");
    for (const message of [s.toPm, s.toAnalyst]) await send(message);
    expect(await send(error("X2.1", 123))).toMatchObject({ effect: "escalated", status: "failed" });
  });

  test("for a missing ability moves the task to the next permitted agent of the notice", async () => {
    const orchestrator = cast.as("orchestrator");
    const s = script("X3");
    await send({ ...s.toPm, reassign_to: ["nobody-1", "stranger-1"] });
    const failing = { ...error("X3", 503), sender_id: "pm-1", recipient_id: "orchestrator" };
    expect(await send(failing)).toMatchObject({ effect: "reassigned", status: "pending" });
    expect((await inboxLines("stranger-1", "X3")).at(-1)).toMatch(/^platform delegation_notice orchestrator/);
    expect(await orchestrator.lineage("X3")).toMatchObject({ agent_id: "stranger-1", status: "pending" });
    const resultMessage = {
      type: "message",
      task_id: "X3",
      sender_id: "stranger-1",
      recipient_id: "orchestrator",
      content: "done",
    };
    expect(await send(resultMessage)).toMatchObject({ effect: "completed" });
    expect(await refused({ ...resultMessage, sender_id: "pm-1", completes_task: true })).toMatchObject({
      code: 403,
    });
  });
});

describe("after a failure", () => {
  const failing = async (root: string) => {
    const s = script(root);
    for (const message of [s.toPm, s.toAnalyst]) await send(message);
    const answer = await send({
      ...{ type: "error_response", task_id: `${root}.1`, sender_id: "analyst-1", recipient_id: "pm-1" },
      ...{ error_code: 400, error_message: "no such quarter" },
    });
    expect(answer).toMatchObject({ effect: "escalated", status: "failed" });
    return s;
  };
  const result = (task_id: string, sender_id: string, recipient_id: string) => ({
    ...{ type: "message", task_id, sender_id, recipient_id, content: "the numbers", completes_task: true },
  });

  test("a repeated notice reports that the task has failed, and how to retry it", async () => {
    const s = await failing("F1");
    const { status, body } = await cast.as("pm-1").send(s.toAnalyst);
    expect([status, body]).toMatchObject([
      409,
      { type: "error_response", error_code: 409, reason: "TASK_STATE_CONFLICT" },
    ]);
    expect(body.metadata).toMatchObject({ task: "F1.1", from: "failed", failure_code: "400" });
    expect(body.error_message).toMatch(
      /^F1\.1 has ended as failed with code 400 \(no such quarter\);.*to retry/,
    );
  });

  test("a repeated idempotency key gets its first answer, also after the failure", async () => {
    const s = script("F2");
    await send(s.toPm);
    const first = await cast.as("pm-1").send(s.toAnalyst, "F2-first");
    await send({
      ...{ type: "error_response", task_id: "F2.1", sender_id: "analyst-1", recipient_id: "pm-1" },
      ...{ error_code: 400, error_message: "no such quarter" },
    });
    expect(await cast.as("pm-1").send(s.toAnalyst, "F2-first")).toEqual({
      status: 201,
      body: { ...first.body, status: "failed", error_code: 400, error_message: "no such quarter" },
    });
  });

  test.each<[string, (s: ReturnType<typeof script>) => Json, string | undefined]>([
    ["by another idempotency key", (s) => s.toAnalyst, "by hand"],
    ["with new text", (s) => ({ ...s.toAnalyst, context_summary: "the third quarter, please" }), undefined],
  ])("the delegator retries the task under its id, %s", async (_name, notice, key) => {
    const root = key === undefined ? "F3" : "F4";
    const s = await failing(root);
    const before = await inboxLines("analyst-1", root);
    const again = await cast.as("pm-1").send(notice(s), key);
    expect(again).toMatchObject({
      status: 201,
      body: { task_id: `${root}.1`, effect: "retried", status: "pending" },
    });
    // A repeated notice has no second effect either.
    expect(await cast.as("pm-1").send(notice(s), key)).toEqual(again);
    expect(await inboxLines("analyst-1", root)).toHaveLength(before.length + 1);
    expect(await send(result(`${root}.1`, "analyst-1", "pm-1"))).toMatchObject({ effect: "submitted" });
    expect(await statuses(root)).toEqual({ [root]: "running", [`${root}.1`]: "in_review" });
  });

  test("the orchestrator gives the task to another agent, and the result reaches the parent's holder too", async () => {
    const s = await failing("F5");
    const notice = { ...s.toAnalyst, sender_id: "orchestrator", recipient_id: "stranger-1", attachments: [] };
    expect(await send(notice)).toMatchObject({ effect: "reassigned", status: "pending" });
    expect((await inboxLines("stranger-1", "F5")).at(-1)).toMatch(/^sender delegation_notice orchestrator/);
    const lineage = await cast.as("orchestrator").lineage("F5");
    expect(lineage.tasks).toMatchObject([{ delegator_id: "orchestrator", agent_id: "stranger-1" }]);
    expect(await send(result("F5.1", "stranger-1", "orchestrator"))).toMatchObject({ effect: "completed" });
    for (const id of ["orchestrator", "pm-1"]) {
      expect((await inboxLines(id, "F5")).at(-1)).toBe("sender message stranger-1: the numbers");
    }
    expect(await refused({ ...notice, context_summary: "once more" })).toMatchObject({
      code: 409,
      reason: "TASK_ID_TAKEN",
    });
  });

  test("the orchestrator retries a root, and its holder the child tasks", async () => {
    const s = await failing("F6");
    const error = { type: "error_response", error_code: 400, error_message: "no data", task_id: "F6" };
    await send({ ...error, sender_id: "pm-1", recipient_id: "orchestrator" });
    expect(await statuses("F6")).toEqual({ F6: "failed", "F6.1": "failed" });
    expect(await refused({ ...s.toAnalyst, context_summary: "again" })).toMatchObject({
      code: 409,
      reason: "TASK_STATE_CONFLICT",
    });
    const retry = await cast.as("orchestrator").send(s.toPm, "F6-again");
    expect(retry.body).toMatchObject({ effect: "retried", status: "pending" });
    expect((await cast.as("pm-1").send(s.toAnalyst, "F6.1-again")).body).toMatchObject({ effect: "retried" });
    expect(await statuses("F6")).toEqual({ F6: "running", "F6.1": "pending" });
  });

  test("no other participant can retry the task", async () => {
    const s = await failing("F7");
    for (const sender_id of ["analyst-1", "qa-1"]) {
      expect(await refused({ ...s.toAnalyst, sender_id, recipient_id: "stranger-1" })).toMatchObject({
        code: 403,
      });
    }
    // The delegator's own manifest still limits the agents to which the delegator may send messages.
    expect(await refused({ ...s.toAnalyst, recipient_id: "stranger-1" })).toMatchObject({
      code: 403,
      rule: "not_allowed",
    });
  });
});

describe("instances of an agent", () => {
  test("work on child tasks in parallel, each with its own inbox and conversation", async () => {
    const [analyst, pm] = [cast.as("analyst-1"), cast.as("pm-1")];
    for (const suffix of ["a", "b"])
      await analyst.register(example("manifest-analyst-1"), `analyst-1:${suffix}`);
    const s = script("I1");
    await send(s.toPm);
    await send({ ...s.toAnalyst, recipient_id: "analyst-1:a" });
    await send({
      ...s.toAnalyst,
      task_id: "I1.2",
      recipient_id: "analyst-1:b",
      context_summary: "the other half",
    });
    const asked = {
      ...s.followUp,
      task_id: "I1.2",
      sender_id: "analyst-1:b",
      content: "which half?",
      attachments: [],
    };
    expect(await analyst.send(asked)).toMatchObject({
      status: 201,
      body: { effect: "said", status: "running" },
    });
    const talk = async (id: string, task: string) =>
      (await analyst.ask("GET", `/cap/tasks/${task}/conversations/${id}`)).body;
    expect((await talk("analyst-1:b", "I1.2")).messages).toMatchObject([
      { type: "delegation_notice", recipient_id: "analyst-1:b" },
      { type: "message", content: "which half?" },
    ]);
    expect((await talk("analyst-1:a", "I1.1")).messages).toHaveLength(1);
    expect((await talk("analyst-1:a", "I1.2")).messages).toEqual([]);
    expect((await analyst.ask("GET", "/cap/inbox/analyst-1:a")).body.messages).toHaveLength(1);
    expect((await pm.ask("GET", "/cap/tasks/I1.2/conversations/analyst-1:b")).status).toBe(403);
    // Worker `a` also cannot complete the task of worker `b`.
    const stolen = { ...asked, sender_id: "analyst-1:a", completes_task: true };
    expect(await analyst.send(stolen)).toMatchObject({ status: 403, body: { metadata: { rule: "holder" } } });
  });
});

describe("a rule with a predicate", () => {
  test("applies in addition to its text", async () => {
    const manifest = example("manifest-pm-1");
    const rules = manifest.delegate_rules as Record<string, object>;
    const pm = cast.as("pm-1");
    await pm.register({
      ...manifest,
      delegate_rules: {
        "analyst-1": {
          ...rules["analyst-1"],
          predicate: '"text_snippet" in task.attachments && task.depth < 3',
        },
      },
    });
    const s = script("P1");
    await send(s.toPm);
    expect(await refused({ ...s.toAnalyst, attachments: [] })).toMatchObject({
      code: 422,
      rule: "predicate_not_met",
    });
    expect(await send(s.toAnalyst)).toMatchObject({ effect: "delegated" });
    await cast.as("operator").register(manifest);
  });
});
