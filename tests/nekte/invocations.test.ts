import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { PublishedGrpc } from "./foreign-grpc.ts";
import { send } from "./plain-http.ts";

let platform: TestPlatform;
let grpc: PublishedGrpc;
/**
 * The ids of the tasks that the worker has begun (`begun`), and of those of which a cancellation reached it
 * (`stopped`).
 */
const begun: string[] = [];
const stopped: string[] = [];

beforeAll(async () => {
  platform = await startPlatform();
  grpc = new PublishedGrpc(platform.url);
  await introduce(platform, "worker", [["echo"], ["waits"]]);
  platform.work("worker", async (input, { task, signal }) => {
    if (task.capabilityId === "echo") return { output: { got: input } };
    begun.push(task.externalId);
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    stopped.push(task.externalId);
    return { output: null };
  });
});
afterAll(async () => {
  grpc.close();
  await platform.stop();
});

async function ask(method: string, params: object) {
  return JSON.parse((await send(`${platform.url}/nekte/worker`, call(method, params))).text);
}
const until = async (holds: () => boolean) => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
};

test("an invocation returns its task id, by which its status is read", async () => {
  const { result } = await ask("nekte.invoke", { cap: "echo", in: { a: 1 } });
  const { task_id } = result.meta;
  expect((await ask("nekte.task.status", { task_id })).result).toMatchObject({
    task_id,
    status: "completed",
  });
  expect((await ask("nekte.verify", { task_id, checks: ["sample"] })).result).toMatchObject({
    sample: { input_sample: { a: 1 }, output_sample: { got: { a: 1 } } },
  });
  const refused = await ask("nekte.invoke", { cap: "echo", in: { a: 2 }, task_id });
  expect(refused.error).toMatchObject({ code: -32602, data: { reason: "TASK_ID_TAKEN" } });
});

test("a caller that disconnects cancels its invocation, over HTTP", async () => {
  const asked = request(`${platform.url}/nekte/worker`, {
    method: "POST",
    headers: { "content-type": "application/json" },
  });
  asked.on("error", () => {});
  asked.end(JSON.stringify(call("nekte.invoke", { cap: "waits", in: {}, task_id: "over http" })));
  await until(() => begun.includes("over http"));
  asked.destroy();
  await until(() => stopped.includes("over http"));
  expect((await ask("nekte.task.status", { task_id: "over http" })).result).toMatchObject({
    status: "cancelled",
  });
});

test("a caller that disconnects cancels its invocation, over gRPC", async () => {
  const before = begun.length;
  const leaving = new AbortController();
  const answer = grpc
    .call(
      "Invoke",
      { cap: "waits", input: Buffer.from("{}"), budget: { max_tokens: 9, detail_level: "compact" } },
      { "nekte-agent": "worker" },
      leaving.signal,
    )
    .catch((refused: unknown) => refused);
  await until(() => begun.length > before);
  leaving.abort();
  expect(await answer).toMatchObject({ code: 1 });
  const id = begun.at(-1) ?? "";
  await until(() => stopped.includes(id));
  expect((await ask("nekte.task.status", { task_id: id })).result).toMatchObject({ status: "cancelled" });
});
