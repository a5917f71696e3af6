import { holderHeaders } from "@depute/client";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { PublishedGrpc } from "./foreign-grpc.ts";
import { eventsIn, send } from "./plain-http.ts";

let platform: TestPlatform;
let grpc: PublishedGrpc;

beforeAll(async () => {
  platform = await startPlatform(["--nekte-default-agent", "first"]);
  grpc = new PublishedGrpc(platform.url);
  for (const id of ["first", "second"]) {
    await introduce(platform, id, []);
    platform.work(id, async () => ({ output: { by: id } }));
  }
});
afterAll(async () => {
  grpc.close();
  await platform.stop();
});

const DELEGATION = { task: { id: "task-001", desc: "x", timeout_ms: 20_000 } };

/** Returns the outcome of a call: the data of the last event, the result, or the error's code. */
async function ask(path: string, method: string, params: object, headers: Record<string, string> = {}) {
  const { text } = await send(`${platform.url}${path}`, call(method, params), headers);
  if (method === "nekte.delegate") return eventsIn(text).at(-1)?.data;
  const { result, error } = JSON.parse(text);
  return result ?? error.code;
}

test("one caller can use an id at two agents, and each call is about the addressed agent's task", async () => {
  for (const agent of ["first", "second"]) {
    const end = await ask(`/nekte/${agent}`, "nekte.delegate", DELEGATION);
    expect(end).toMatchObject({ task_id: "task-001", out: { compact: { by: agent } } });
    const source = await ask(`/nekte/${agent}`, "nekte.verify", { task_id: "task-001", checks: ["source"] });
    expect(source).toMatchObject({ source: { model: agent } });
    expect(await ask(`/nekte/${agent}`, "nekte.task.cancel", { task_id: "task-001" })).toBe(-32010);
    expect(await grpc.call("TaskStatus", { task_id: "task-001" }, { "nekte-agent": agent })).toMatchObject({
      status: "completed",
    });
  }
  // At the address of all agents, the id refers to the default agent's task.
  expect(await ask("/nekte", "nekte.verify", { task_id: "task-001", checks: ["source"] })).toMatchObject({
    source: { model: "first" },
  });
});

test("another caller's task of the same id neither collides nor is visible", async () => {
  const path = "/nekte/second";
  const [alice, bob, eve] = [1, 2, 3].map(() => ({
    engine,
    keypair: generateKeypair(engine),
    publicUrl: platform.url,
  }));
  for (const [by, desc] of [
    [alice, "hers"],
    [bob, "his"],
  ] as const) {
    const params = { task: { ...DELEGATION.task, id: "shared", desc } };
    const end = await ask(path, "nekte.delegate", params, holderHeaders(by as typeof alice & object, path));
    expect(end).toMatchObject({ task_id: "shared", out: { compact: { by: "second" } } });
  }
  for (const method of ["nekte.task.status", "nekte.task.cancel", "nekte.task.resume"]) {
    const headers = holderHeaders(eve as typeof eve & object, path);
    expect(await ask(path, method, { task_id: "shared" }, headers)).toBe(-32009);
  }
});

test("an id without a task at the addressed agent is not found, whatever tasks other agents have", async () => {
  await ask("/nekte/first", "nekte.delegate", { task: { ...DELEGATION.task, id: "only-first" } });
  expect(await ask("/nekte/second", "nekte.task.status", { task_id: "only-first" })).toBe(-32009);
  expect(await ask("/nekte", "nekte.task.status", { task_id: "only-first" })).toMatchObject({
    status: "completed",
  });
});

test("a context that has expired is -32004 in every call", async () => {
  const envelope = {
    id: "brief",
    data: 1,
    permissions: { forward: true, persist: true, derive: true },
    ttl_s: 1,
  };
  await ask("/nekte/first", "nekte.context", { envelope });
  const contextCall = (action: string) =>
    ask("/nekte/first", "nekte.context", { action, envelope: { id: "brief" } });
  while ((await contextCall("request")) !== -32004) await new Promise((resolve) => setImmediate(resolve));
  expect(await contextCall("revoke")).toBe(-32004);
  const context = { ...envelope, data: null, compression: "reference" };
  const params = { task: { ...DELEGATION.task, id: "too-late" }, context };
  expect(await ask("/nekte/first", "nekte.delegate", params)).toMatchObject({ code: -32004 });
  await expect(
    grpc.call("Context", { action: "request", envelope: { id: "brief", permissions: {}, ttl_s: 1 } }),
  ).rejects.toMatchObject({
    nekteCode: "-32004",
  });
});
