import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ConnectError } from "@connectrpc/connect";
import { RetryInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, introduce, startPlatform, type TestPlatform } from "./platform.ts";

/** A platform where a principal may have one open task, and an organization two. */
let platform: TestPlatform;
let folder: string;

const ORGANIZATIONS: Readonly<Record<string, string>> = {
  "member-1": "acme",
  "member-2": "acme",
  "member-3": "acme",
  other: "globex",
};
const CALLERS = ["grpc", "curl", "batch", "replay", "a2a", "nekte", ...Object.keys(ORGANIZATIONS)];
const authorization = (name: string) => `Bearer secret-of-${name}`;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "depute-open-tasks-"));
  const file = join(folder, "credentials.json");
  const credentials = CALLERS.map((principal) => ({
    principal,
    sha256: createHash("sha256").update(`secret-of-${principal}`).digest("hex"),
    ...(ORGANIZATIONS[principal] !== undefined && { organization: ORGANIZATIONS[principal] }),
  }));
  writeFileSync(file, JSON.stringify(credentials));
  platform = await startPlatform([
    ...["--credentials-file", file],
    ...["--quota-open-tasks", "1", "--quota-organization-factor", "2"],
  ]);
  await introduce(platform, "worker");
}, 120_000);
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

const draft = { agentId: "worker", description: "work" };
const create = (name: string, requestId: string = crypto.randomUUID()) =>
  platform.clients.tasks.createTask(
    { requestId, draft },
    { headers: { authorization: authorization(name) } },
  );
const limitOf = (call: Promise<unknown>) =>
  call.then(
    () => "",
    (error) => /its quota of \d+ open tasks/.exec(ConnectError.from(error).message)?.[0] ?? String(error),
  );

test("a stock gRPC client gets RESOURCE_EXHAUSTED with RetryInfo, and is served when a task ends", async () => {
  const { task } = await create("grpc");
  const error = ConnectError.from(await create("grpc").catch((thrown: unknown) => thrown));
  expect(error.message).toContain("the principal has used its quota of 1 open tasks");
  const [retry] = error.findDetails(RetryInfoSchema);
  expect(retry?.retryDelay?.seconds).toBe(1n);
  const headers = { authorization: authorization("grpc") };
  await platform.clients.tasks.cancelTask({ taskId: task?.id ?? "" }, { headers });
  await create("grpc");
});

test("curl gets 429 with Retry-After", async () => {
  const post = async () => {
    const { stdout } = await promisify(execFile)("curl", [
      ...["-sS", "-o", "/dev/null", "-w", "%{http_code} %header{retry-after}", "-X", "POST"],
      ...["-H", "content-type: application/json", "-H", `authorization: ${authorization("curl")}`],
      ...["-d", JSON.stringify({ requestId: crypto.randomUUID(), draft })],
      `${platform.url}/depute.tasks.v1.TaskService/CreateTask`,
    ]);
    return stdout.trim();
  };
  expect(await post()).toBe("200");
  expect(await post()).toBe("429 1");
});

test("each refused task of a batch counts in the metric of refusals", async () => {
  const refusals = async () => {
    const metrics = await (await fetch(`${platform.url}/metrics`)).text();
    const line = /^depute_quota_refusals_total\{[^}]*limit="principal_open_tasks"[^}]*\} (\d+)/m;
    return Number(line.exec(metrics)?.[1] ?? 0);
  };
  const before = await refusals();
  const requests = [1, 2, 3].map(() => ({ requestId: crypto.randomUUID(), draft }));
  const answer = await fetch(`${platform.url}/depute.tasks.v1.TaskService/BatchCreateTasks`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: authorization("batch") },
    body: JSON.stringify({ requests }),
  });
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  const { outcomes } = JSON.parse(text) as { outcomes: { taskId?: string; error?: object }[] };
  expect(outcomes.map((outcome) => Object.keys(outcome)[0]).sort()).toEqual(["error", "error", "taskId"]);
  expect((await refusals()) - before).toBe(2);
});

test("a replay returns the existing task", async () => {
  const first = await create("replay", "again");
  expect(await limitOf(create("replay"))).not.toBe("");
  expect((await create("replay", "again")).task?.id).toBe(first.task?.id);
});

test("two organizations do not affect each other", async () => {
  await create("member-1");
  await create("member-2");
  expect(await limitOf(create("member-3"))).toBe("its quota of 2 open tasks");
  await create("other");
});

const message = (id: string) => ({ messageId: id, role: "ROLE_USER", parts: [{ text: "count" }] });
const configuration = { returnImmediately: true };
const work = (id: string) => ({ task: { id, desc: "x", timeout_ms: 60_000 } });
test.each([
  {
    wire: "a2a",
    path: "/a2a/worker",
    body: (id: string) => call("SendMessage", { message: message(id), configuration }),
    refusal: '"metadata":{"limit":"principal_open_tasks","max":"1","retry_after_ms":"1000"}',
  },
  {
    wire: "nekte",
    path: "/nekte/worker",
    body: (id: string) => call("nekte.delegate", work(id)),
    refusal: "the principal has used its quota of 1 open tasks; call again in 1000 ms",
  },
])("the wire $wire refuses in its own form", async ({ wire, path, body, refusal }) => {
  const headers = { authorization: authorization(wire), "a2a-version": "1.0" };
  const first = await platform.post(path, body("first"), headers);
  expect(first.status).toBe(200);
  await first.body?.cancel();
  expect(await (await platform.post(path, body("second"), headers)).text()).toContain(refusal);
});
