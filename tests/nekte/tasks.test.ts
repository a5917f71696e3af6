import { holderHeaders } from "@depute/client";
import { describe, expect, test } from "vitest";
import { call, error, json, result } from "../gateway/platform.ts";
import { frames, lasting, Scene, work } from "./scene.ts";

const scene = new Scene();
const { heldCalls, nekte, status } = scene;

describe("nekte.task", () => {
  test("is cancelled by the caller's id; the stream reports it, and a second call gets an error", async () => {
    const params = work("wait");
    const { id } = params.task;
    const stream = await nekte("nekte.delegate", params, "/nekte/nlp-worker");
    const read = frames(stream);
    while (!heldCalls.has(id)) await new Promise((resolve) => setImmediate(resolve));
    const reason = "User requested early stop";
    expect(await result(nekte("nekte.task.cancel", { task_id: id, reason }))).toEqual({
      task_id: id,
      status: "cancelled",
      previous_status: "running",
    });
    expect((await read).at(-1)).toBe(
      `id: 6\nevent: cancelled\ndata: {"task_id":"${id}","reason":"${reason}","previous_status":"running"}`,
    );
    expect(await status(id)).toMatchObject({ status: "cancelled" });
    expect(await error(nekte("nekte.task.cancel", { task_id: id, reason: null }))).toMatchObject({
      code: -32010,
      message: "TASK_NOT_CANCELLABLE",
      data: { metadata: { task: id, status: "cancelled" } },
    });
  });

  test("that has ended cannot be cancelled", async () => {
    const params = work();
    await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
    const refused = await error(nekte("nekte.task.cancel", { task_id: params.task.id }));
    expect(refused).toMatchObject({ code: -32010, message: "TASK_NOT_CANCELLABLE" });
  });

  test("has its status, with times in the text's format", async () => {
    const params = work();
    await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(await status(params.task.id)).toEqual({
      task_id: params.task.id,
      status: "completed",
      progress: { processed: 1, total: 2 },
      checkpoint_available: false,
      created_at: time,
      updated_at: time,
    });
  });

  test("that was suspended is resumed from its checkpoint, on the stream that stayed open", async () => {
    const params = work("suspend");
    const { id } = params.task;
    const read = frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
    while ((await status(id)).status !== "suspended") await new Promise((resolve) => setImmediate(resolve));
    expect(await status(id)).toMatchObject({ checkpoint_available: true });
    const budget = { max_tokens: 100, detail_level: "minimal" };
    expect(await result(nekte("nekte.task.resume", { task_id: id, budget }))).toEqual({
      task_id: id,
      status: "running",
      previous_status: "suspended",
    });
    const eventKinds = (await read).map((frame) =>
      frame
        .replace(/"ms":\d+/, '"ms":1')
        .split("\n")
        .slice(1),
    );
    expect(eventKinds).toEqual([
      ["event: suspended", `data: {"task_id":"${id}","checkpoint_available":true}`],
      ["event: resumed", `data: {"task_id":"${id}","from_checkpoint":true}`],
      [
        "event: complete",
        `data: {"task_id":"${id}","out":{"minimal":"done"},"meta":{"ms":1,"tokens_used":1},"status":"completed"}`,
      ],
    ]);
    expect(await error(nekte("nekte.task.resume", { task_id: id }))).toMatchObject({
      code: -32011,
      message: "TASK_NOT_RESUMABLE",
    });
  });

  test.each(["nekte.task.status", "nekte.task.cancel", "nekte.task.resume"])(
    "%s of an unknown task is refused",
    async (method) => {
      expect(await error(nekte(method, { task_id: "never" }))).toMatchObject({
        code: -32009,
        message: "TASK_NOT_FOUND",
      });
    },
  );
});

describe("a holder proof", () => {
  const { holder, postAs: post } = scene;

  test("makes its key the delegator, and counts for one call of the wire", async () => {
    const [alice, eve] = [holder(), holder()];
    const params = lasting(work("wait"));
    const { id } = params.task;
    const stream = frames(await post(alice, "nekte.delegate", params));
    while (!heldCalls.has(id)) await new Promise((resolve) => setImmediate(resolve));
    expect((await result(post(alice, "nekte.task.status", { task_id: id }))).status).toBe("running");
    expect(await error(post(eve, "nekte.task.status", { task_id: id }))).toMatchObject({ code: -32009 });
    expect(await error(post(eve, "nekte.task.cancel", { task_id: id }))).toMatchObject({ code: -32009 });
    expect((await result(post(alice, "nekte.task.cancel", { task_id: id }))).status).toBe("cancelled");
    expect((await stream).at(-1)).toContain("event: cancelled");
    const { task } = await scene.platform.clients.tasks
      .listTasks(
        { agentId: "nlp-worker" },
        { headers: holderHeaders(alice, "/depute.tasks.v1.TaskService/ListTasks") },
      )
      .then(({ tasks: [task] }) => ({ task }));
    expect(task).toMatchObject({ externalId: id, delegator: alice.keypair.principal.id });
  });

  test("is sufficient for an inline context that may not be persisted", async () => {
    const alice = holder();
    const params = work();
    const eventKinds = await frames(await post(alice, "nekte.delegate", params));
    expect(eventKinds.at(-1)).toContain('"compact":{"got":{"reviews":3}}');
    // A repeated delegation returns the same task's result.
    expect((await frames(await post(alice, "nekte.delegate", params))).at(-1)).toBe(eventKinds.at(-1));
  });

  test("is sufficient for a discovery and an outdated hash", async () => {
    const alice = holder();
    const statusFound = await result(
      post(alice, "nekte.discover", { level: 0, filter: { id: "shared" } }, "/nekte"),
    );
    expect(statusFound.caps).toHaveLength(2);
    const stale = { cap: "sentiment", h: "00000000", in: { text: "x" } };
    expect(await error(post(alice, "nekte.invoke", stale, "/nekte"))).toMatchObject({ code: -32001 });
  });

  test.each([
    ["that is used twice", (headers: Record<string, string>) => headers, "replayed_proof"],
    ["for another address", () => holderHeaders(holder(), "/nekte"), "invalid_proof"],
    ["that is malformed", () => ({ dpop: "e30.e30.e30" }), "invalid_proof"],
  ])("%s is denied", async (_, change, denial) => {
    const alice = holder();
    const path = "/nekte/nlp-worker";
    const headers = holderHeaders(alice, path);
    await json(scene.platform.post(path, call("nekte.task.status", { task_id: "none" }), headers));
    const refused = await error(
      scene.platform.post(path, call("nekte.task.status", { task_id: "none" }), change(headers)),
      401,
    );
    expect(refused).toMatchObject({
      code: -32050,
      data: { reason: "UNAUTHENTICATED", metadata: { denial } },
    });
  });
});
