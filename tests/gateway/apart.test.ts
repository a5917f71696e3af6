import { holderHeaders } from "@depute/client";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { expect, test, vi } from "vitest";
import { call, error, introduce, result, startApart } from "./platform.ts";

test("a separate gateway gives the same answers, and reports unavailable services", async () => {
  const platform = await startApart();
  const healthBecomes = (status: number) =>
    vi.waitFor(async () => expect((await fetch(`${platform.url}/health`)).status).toBe(status), {
      timeout: 10_000,
      interval: 50,
    });
  try {
    await healthBecomes(200);
    await introduce(platform, "worker", [["sentiment"]]);
    platform.work("worker", async (input, { progress }) => {
      await progress(1, 2);
      return { output: { got: input } };
    });
    const alice = { engine, keypair: generateKeypair(engine), publicUrl: platform.url };
    const post = (method: string, params: unknown, path = "/nekte/worker") =>
      platform.post(path, call(method, params), holderHeaders(alice, path));

    expect((await result(post("nekte.discover", { level: 0 }))).caps).toHaveLength(1);
    expect((await result(post("nekte.invoke", { cap: "sentiment", in: {} }))).out).toEqual({ got: {} });
    expect(await error(post("nekte.invoke", { cap: "sentiment", h: "00000000", in: {} }))).toMatchObject({
      code: -32001,
      data: { schema: { id: "sentiment" } },
    });
    const params = { task: { id: "t", desc: "x", timeout_ms: 20_000 } };
    const events = await (await post("nekte.delegate", params)).text();
    expect(events.match(/^event: .*$/gm)).toEqual(["event: progress", "event: complete"]);
    expect(await result(post("nekte.task.status", { task_id: "t" }))).toMatchObject({ status: "completed" });
    expect(await error(post("nekte.task.cancel", { task_id: "t" }))).toMatchObject({ code: -32010 });

    await platform.stopServices();
    expect(await error(post("nekte.task.status", { task_id: "t" }))).toMatchObject({
      code: -32057,
      data: { reason: "DEPENDENCY_UNAVAILABLE", metadata: { service: "tasks" } },
    });
    expect((await fetch(`${platform.url}/delegateos/revocations`)).status).toBe(503);
    // The gateway is up, but its services are not.
    await healthBecomes(503);
  } finally {
    await platform.stop();
  }
});
