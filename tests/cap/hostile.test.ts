import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, type Cast, example, type Json, playerAt, secretOf, startCast } from "./cast.ts";

let cast: Cast;
beforeAll(async () => {
  cast = await startCast();
  const orchestrator = cast.as("orchestrator");
  const notice = { ...example("example-01-delegation-to-pm"), task_id: "H1" };
  expect(await orchestrator.send(notice)).toMatchObject({ status: 201 });
});
afterAll(() => cast.stop());

const message = (more: object = {}): Json => ({
  type: "message",
  task_id: "H1",
  sender_id: "pm-1",
  recipient_id: "user",
  content: "hello",
  ...more,
});
const isRefused = (answer: Answer, code: number) =>
  expect(answer).toMatchObject({
    status: code,
    body: { type: "error_response", error_code: code, sender_id: "depute" },
  });

describe("a message is refused, and the platform continues", () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  test.each<[string, string | object]>([
    ["that is null", "null"],
    ["that is a list", "[]"],
    ["that is empty", ""],
    ["that is nested too deep", deep],
    [
      "with an attachment that is nested too deep",
      JSON.stringify(message()).replace(/}$/, `,"attachments":[{"type":"python_object","object":${deep}}]}`),
    ],
    [
      "that exceeds the limit of a message",
      message({ attachments: Array(4).fill({ type: "text_snippet", text: "x".repeat(400_000) }) }),
    ],
    [
      "with too many attachments",
      message({ attachments: Array(101).fill({ type: "text_snippet", text: "" }) }),
    ],
    ["with an attachment without a type", message({ attachments: [{ text: "" }] })],
    [
      "with an attachment of two types",
      message({ attachments: [{ type: "file", path: "/a", url: "https://a.example" }] }),
    ],
    ["without a sender", message({ sender_id: "" })],
    ["to a malformed name", message({ recipient_id: "../user" })],
    ["to an instance without a base", message({ recipient_id: ":a" })],
    ["with a task id that is too long", message({ task_id: `${"H1.".repeat(200)}1` })],
    ["with a number as its text", message({ content: 7 })],
    ["with a malformed code", message({ type: "error_response", error_code: "504", error_message: "" })],
    [
      "with a code beyond the range of codes",
      message({ type: "error_response", error_code: 1e12, error_message: "" }),
    ],
    ["with an unknown decision", message({ type: "oversight_decision", decision: "maybe" })],
    ["with a half of a surrogate pair", '{"type":"message","content":"\\ud800"}'],
  ])("%s", async (_name, body) => {
    isRefused(await cast.as("pm-1").send(body as never), 400);
  });

  test("that exceeds the limit of a body", async () => {
    const body = JSON.stringify(message({ content: "x".repeat(5_000_000) }));
    isRefused(await cast.as("pm-1").send(body as never), 413);
  });

  test("that is not JSON by its type, or not UTF-8", async () => {
    const headers = { authorization: `Bearer ${secretOf("pm-1")}`, "content-type": "text/plain" };
    const url = `${cast.url}/cap/messages`;
    const post = async (type: string, body: string | Uint8Array<ArrayBuffer>) => {
      const response = await fetch(url, {
        method: "POST",
        headers: { ...headers, "content-type": type },
        body,
      });
      return { status: response.status, body: await response.json() } as Answer;
    };
    isRefused(await post("text/plain", JSON.stringify(message())), 415);
    isRefused(await post("application/json", Uint8Array.from([0x22, 0xc3, 0x28, 0x22])), 400);
  });

  test.each<[string, object, number]>([
    ["the platform", { sender_id: "depute" }, 404],
    ["the orchestrator", { sender_id: "orchestrator" }, 403],
    ["the user", { sender_id: "user" }, 403],
    ["an instance of a role", { sender_id: "user:a" }, 404],
    ["another agent", { sender_id: "qa-1" }, 403],
    ["an instance that is not registered", { sender_id: "pm-1:ghost" }, 404],
  ])("in the name of %s", async (_name, more, code) => {
    isRefused(await cast.as("pm-1").send(message(more)), code);
  });

  test("to the platform, which has no inbox", async () => {
    isRefused(await cast.as("pm-1").send(message({ recipient_id: "depute" })), 404);
    isRefused(await cast.as("pm-1").ask("GET", "/cap/inbox/depute"), 404);
  });

  test("with an endless idempotency key", async () => {
    isRefused(await cast.as("pm-1").send(message(), "k".repeat(200)), 400);
  });

  test("without credentials, or with another participant's", async () => {
    const response = await fetch(`${cast.url}/cap/inbox/user`);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("DPoP, Bearer");
    isRefused(await cast.as("stranger-1").ask("GET", "/cap/inbox/pm-1"), 403);
    isRefused(await cast.as("stranger-1").ask("GET", "/cap/inbox/user"), 403);
    isRefused(await cast.as("stranger-1").ask("GET", "/cap/tasks/H1"), 404);
    isRefused(await cast.as("stranger-1").ask("GET", "/cap/tasks/H1/conversations/stranger-1"), 404);
  });
});

test.each<[string, string, unknown, number]>([
  ["GET", "/cap/inbox/pm-1?after=-1", undefined, 400],
  ["GET", "/cap/inbox/pm-1?after=1e3", undefined, 400],
  ["GET", "/cap/inbox/pm-1?limit=1001", undefined, 400],
  ["GET", "/cap/inbox/..%2fuser", undefined, 404],
  ["GET", "/cap/inbox/nobody-1", undefined, 404],
  ["GET", "/cap/tasks/H1..1", undefined, 400],
  ["GET", "/cap/tasks/H1?format=svg", undefined, 400],
  ["GET", "/cap/reviews?state=lost", undefined, 400],
  ["GET", "/cap/reviews/7", undefined, 400],
  ["POST", "/cap/inbox/pm-1/acknowledgements", {}, 400],
  ["POST", "/cap/inbox/pm-1/acknowledgements", { up_to: 1.5 }, 400],
  ["POST", "/cap/inbox/pm-1/acknowledgements", { sequences: [99] }, 400],
  ["POST", "/cap/inbox/pm-1/acknowledgements", { sequences: "all" }, 400],
  ["PUT", "/cap/agents/other-1", example("manifest-pm-1"), 400],
  ["PUT", "/cap/agents/qa-1", example("manifest-qa-1"), 403],
])("%s %s is refused with %o", async (method, path, body, code) => {
  isRefused(await cast.as("pm-1").ask(method, path, body), code);
});

test.each<[string, string, string, number]>([
  ["of another", "user", "", 403],
  ["of no participant", "nobody-1", "", 404],
  ["after a message that does not exist", "pm-1", "?after=99", 400],
])("events of an inbox %s are refused before they begin", async (_name, id, query, code) => {
  const headers = { authorization: `Bearer ${secretOf("pm-1")}`, accept: "text/event-stream" };
  const response = await fetch(`${cast.url}/cap/inbox/${id}${query}`, { headers });
  isRefused({ status: response.status, body: await response.json() }, code);
});

test("attachments are transported unchanged: nothing is opened, unpickled or run", async () => {
  const attachments = [
    { type: "file", path: "/etc/passwd" },
    { type: "file", url: "file:///etc/passwd" },
    {
      type: "python_object",
      object: { py: ["__reduce__", "os.system", "rm -rf /"], ["__proto__"]: { admin: true } },
    },
    { type: "text_snippet", text: "<script>alert(1)</script>" },
  ];
  expect(await cast.as("pm-1").send(message({ attachments }))).toMatchObject({ status: 201 });
  const { messages } = await cast.as("user").inbox("?limit=1000");
  expect(messages.at(-1).message.attachments).toEqual(attachments);
  const page = await cast.as("user").ask("GET", "/cap/tasks/H1?format=html");
  expect(page.body).not.toContain("<script");
});

describe("of many concurrent messages", () => {
  test("one delegation of an id is created, and one result completes it", async () => {
    const orchestrator = cast.as("orchestrator");
    const notices = Array.from({ length: 10 }, (_, at) => ({
      ...example("example-01-delegation-to-pm"),
      task_id: "H2",
      context_summary: `version ${at}`,
    }));
    const delegated = await Promise.all(notices.map((notice) => orchestrator.send(notice)));
    expect(delegated.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(new Set(delegated.map(({ status }) => status))).toEqual(new Set([201, 409]));
    const result = message({ task_id: "H2", recipient_id: "orchestrator" });
    const results = await Promise.all(Array.from({ length: 10 }, () => cast.as("pm-1").send(result)));
    expect(results.filter(({ body }) => body.effect === "completed")).toHaveLength(1);
    for (const { status } of results) expect([201, 409]).toContain(status);
  });

  test("one decision counts", async () => {
    const { qa, decide } = await reviewed("H3");
    const answers = await Promise.all(
      ["approved", "rejected", "changes_requested", "approved", "rejected"].map((decision) =>
        qa.send(decide(decision)),
      ),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    const lineage = await cast.as("orchestrator").lineage("H3");
    const won = answers.find(({ status }) => status === 201)?.body.effect;
    const outcomes: Record<string, string> = {
      approved: "completed",
      rejected: "failed",
      changes_requested: "pending",
    };
    expect(lineage.tasks[0].status).toBe(outcomes[won]);
  });
});

/** Makes the analyst submit a result, which is then in review. */
async function reviewed(root: string) {
  const rename = (name: string): Json => {
    const document = example(name);
    return { ...document, task_id: String(document.task_id).replace(/^T1/, root) };
  };
  for (const name of [
    "example-01-delegation-to-pm",
    "example-04-delegation-to-analyst",
    "example-07-delegation-to-qa",
  ]) {
    const document = rename(name);
    expect(await playerAt(cast.url, document.sender_id).send(document)).toMatchObject({ status: 201 });
  }
  const decide = (decision: string) => ({
    type: "oversight_decision",
    task_id: `${root}.1`,
    sender_id: "qa-1",
    recipient_id: "analyst-1",
    decision,
    comment: `because ${decision}`,
  });
  return { qa: cast.as("qa-1"), decide };
}
