import { once } from "node:events";
import { request } from "node:http";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { WorkFailure } from "@depute/client";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { Nekte } from "@depute/contracts/nekte/v1/nekte_pb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  bytes,
  call,
  error,
  introduce,
  json,
  notification,
  startPlatform,
  type TestPlatform,
} from "../gateway/platform.ts";

let platform: TestPlatform;

beforeAll(async () => {
  platform = await startPlatform(["--nekte-invoke-timeout", "300ms", "--body-timeout", "300ms"]);
  await introduce(platform, "worker", [["echo"], ["fails"], ["waits"]]);
  platform.work("worker", async (input, { task, signal }) => {
    if (task.capabilityId === "fails") throw new WorkFailure("NO_LEXICON", "there is no lexicon", false);
    if (task.capabilityId === "waits" || task.description === "wait") {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    }
    return { output: { got: input } };
  });
  for (const id of ["done"]) await (await post("nekte.delegate", work(id))).text();
  await post("nekte.context", { envelope: { id: "gone", data: 1, ...ENVELOPE } });
  await post("nekte.context", { action: "revoke", envelope: { id: "gone" } });
});
afterAll(() => platform.stop());

const ENVELOPE = { permissions: { forward: false, persist: true, derive: true }, ttl_s: 60 };
const work = (id: string, more: object = {}) => ({ task: { id, desc: "x", timeout_ms: 20_000, ...more } });
const post = (method: string, params: object) =>
  platform.post("/nekte/worker", call(method, params), { accept: "application/json" });
const nekte = () => createClient(Nekte, platform.transport);
const headers = { "nekte-agent": "worker" };
const permissions = {};
const tiny = { max_tokens: 1, detail_level: "full" };

type Grpc = () => Promise<unknown>;
/** Returns the first response of a stream; rejects if the stream is refused. */
const firstOf = (request: Parameters<ReturnType<typeof nekte>["delegate"]>[0]) =>
  nekte().delegate(request, { headers })[Symbol.asyncIterator]().next();

describe("each of NEKTE's codes, over JSON-RPC and gRPC", () => {
  test.each<[number, string, string, object, Code | "in band", Grpc]>([
    [
      -32001,
      "VERSION_MISMATCH",
      "nekte.invoke",
      { cap: "echo", h: "00000000", in: {} },
      "in band",
      async () => (await nekte().invoke({ cap: "echo", h: "00000000", input: bytes({}) }, { headers })).error,
    ],
    [
      -32002,
      "CAPABILITY_NOT_FOUND",
      "nekte.invoke",
      { cap: "nothing", in: {} },
      Code.NotFound,
      () => nekte().invoke({ cap: "nothing", input: bytes({}) }, { headers }),
    ],
    [
      -32003,
      "BUDGET_EXCEEDED",
      "nekte.invoke",
      { cap: "echo", in: { text: "too long" }, budget: tiny },
      Code.ResourceExhausted,
      () =>
        nekte().invoke(
          { cap: "echo", input: bytes({ text: "too long" }), budget: { maxTokens: 1, detailLevel: "full" } },
          { headers },
        ),
    ],
    [
      -32004,
      "CONTEXT_EXPIRED",
      "nekte.context",
      { action: "request", envelope: { id: "gone" } },
      Code.FailedPrecondition,
      () => nekte().context({ action: "request", envelope: { id: "gone", permissions, ttlS: 1 } }),
    ],
    [
      -32005,
      "CONTEXT_PERMISSION_DENIED",
      "nekte.delegate",
      { ...work("scoped"), context: { data: 1, ...ENVELOPE, scope: ["echo"] } },
      Code.PermissionDenied,
      () =>
        firstOf({
          task: { id: "scoped", desc: "x", timeoutMs: 1000 },
          context: { data: bytes(1), permissions, ttlS: 1, scope: { capabilities: ["echo"] } },
        }),
    ],
    [
      -32006,
      "TASK_TIMEOUT",
      "nekte.invoke",
      { cap: "waits", in: {} },
      Code.DeadlineExceeded,
      () => nekte().invoke({ cap: "waits", input: bytes({}) }, { headers }),
    ],
    [
      -32007,
      "TASK_FAILED",
      "nekte.invoke",
      { cap: "fails", in: {} },
      Code.FailedPrecondition,
      () => nekte().invoke({ cap: "fails", input: bytes({}) }, { headers }),
    ],
    [
      -32008,
      "VERIFICATION_FAILED",
      "nekte.verify",
      { task_id: "done", result_hash: "0".repeat(12), verification_type: "deterministic" },
      Code.FailedPrecondition,
      () => nekte().verify({ taskId: "done", resultHash: "0".repeat(12) }),
    ],
    [
      -32009,
      "TASK_NOT_FOUND",
      "nekte.task.status",
      { task_id: "never" },
      Code.NotFound,
      () => nekte().taskStatus({ taskId: "never" }),
    ],
    [
      -32010,
      "TASK_NOT_CANCELLABLE",
      "nekte.task.cancel",
      { task_id: "done" },
      Code.FailedPrecondition,
      () => nekte().taskCancel({ taskId: "done" }),
    ],
    [
      -32011,
      "TASK_NOT_RESUMABLE",
      "nekte.task.resume",
      { task_id: "done" },
      Code.FailedPrecondition,
      () => nekte().taskResume({ taskId: "done" }),
    ],
  ])("%i %s", async (code, message, method, params, status, grpc) => {
    expect(await error(post(method, params))).toMatchObject({ code, message });
    if (status === "in band") {
      expect(await grpc()).toMatchObject({ code, message });
      return;
    }
    const refused = ConnectError.from(await grpc().catch((thrown: unknown) => thrown));
    const [info] = refused.findDetails(ErrorInfoSchema);
    expect([refused.code, info?.metadata.nekte_code]).toEqual([status, String(code)]);
  });

  test("after the start of the task are events, on both", async () => {
    const late = call("nekte.delegate", work("late", { desc: "wait", timeout_ms: 300 }));
    const text = await (await platform.post("/nekte/worker", late)).text();
    expect(text).toMatch(/event: error\ndata: \{"task_id":"late","code":-32006,/);
    const events: unknown[] = [];
    const task = { id: "late too", desc: "wait", timeoutMs: 300 };
    for await (const { event } of nekte().delegate({ task }, { headers })) events.push(event);
    expect(events.at(-1)).toMatchObject({ case: "error", value: { taskId: "late too", code: -32006 } });
  });
});

describe("the envelope", () => {
  test("contains several calls, each is answered by its id, and notifications are not", async () => {
    const answer = await json(
      platform.post("/nekte/worker", [
        call("nekte.discover", { level: 0 }, "a"),
        notification("nekte.invoke", { cap: "echo", in: {} }),
        call("nekte.invoke", { cap: "echo", in: { n: 1 } }, 2),
        call("nekte.task.status", { task_id: "never" }, 3),
        { jsonrpc: "1.0", id: 4, method: "nekte.discover" },
      ]),
    );
    expect(answer).toMatchObject([
      { id: "a", result: { agent: "worker" } },
      { id: 2, result: { out: { got: { n: 1 } } } },
      { id: 3, error: { code: -32009 } },
      { id: 4, error: { code: -32600 } },
    ]);
    expect(answer).toHaveLength(4);
    const silent = await platform.post("/nekte", [notification("nekte.discover", { level: 0 })]);
    expect([silent.status, await silent.text()]).toEqual([204, ""]);
  });

  test("ends if its body does not arrive", async () => {
    const { hostname, port } = new URL(platform.url);
    const slow = request({
      hostname,
      port,
      path: "/nekte",
      method: "POST",
      headers: { "content-type": "application/json", "content-length": 100 },
    });
    slow.on("error", () => {});
    slow.write('{"jsonrpc":');
    const [response] = await once(slow, "response");
    let text = "";
    for await (const chunk of response) text += chunk;
    expect(response.statusCode).toBe(408);
    expect(JSON.parse(text)).toMatchObject({
      id: null,
      error: { code: -32058, message: "DEADLINE_EXCEEDED" },
    });
    slow.destroy();
  });

  test("has a health address beside it", async () => {
    expect((await fetch(`${platform.url}/health`)).status).toBe(200);
  });
});
