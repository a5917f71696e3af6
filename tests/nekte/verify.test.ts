import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { error, result } from "../gateway/platform.ts";
import { frames, lasting, Scene, work } from "./scene.ts";

const scene = new Scene();
const { nekte } = scene;

describe("nekte.verify", () => {
  const HASH = expect.stringMatching(/^sha256:[0-9a-f]{64}$/);
  const verify = (taskId: string, params: object) => nekte("nekte.verify", { task_id: taskId, ...params });
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  // The task's full output is {"got":{"reviews":3}}; its compact output is "done".
  let id = "";
  beforeAll(async () => {
    const params = lasting(work());
    id = params.task.id;
    await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
  });

  test("recomputes the hash and compares it, for every form of the worker's result", async () => {
    const outputHash = sha256('{"got":{"reviews":3}}');
    for (const result_hash of [
      outputHash,
      `sha256:${outputHash}`,
      outputHash.slice(0, 12),
      outputHash.toUpperCase(),
    ]) {
      const params = { result_hash, verification_type: "deterministic" };
      expect(await result(verify(id, params))).toEqual({
        task_id: id,
        status: "verified",
        hash: `sha256:${outputHash}`,
        hash_valid: true,
      });
    }
    const short = sha256('"done"');
    expect(await result(verify(id, { checks: ["hash"], result_hash: short }))).toMatchObject({
      hash: `sha256:${short}`,
      hash_valid: true,
    });
  });

  test("names the failed check", async () => {
    const checks = ["source"];
    expect(await error(verify(id, { result_hash: "abc123def456", checks }))).toEqual({
      code: -32008,
      message: "VERIFICATION_FAILED",
      data: {
        reason: "VERIFICATION_FAILED",
        detail: expect.any(String),
        metadata: { task: id, checks: "hash" },
        task_id: id,
        checks: ["hash"],
        hash: HASH,
        hash_valid: false,
      },
    });
  });

  test("without a hash to compare confirms nothing", async () => {
    const hash = { task_id: id, hash: HASH };
    expect(await result(verify(id, { verification_type: "deterministic" }))).toEqual(hash);
    expect(await result(verify(id, { checks: ["hash"] }))).toEqual(hash);
  });

  test("shows an input with its output and its author", async () => {
    expect(await result(verify(id, { checks: ["sample", "source"] }))).toEqual({
      task_id: id,
      sample: { input_sample: { reviews: 3 }, output_sample: { got: { reviews: 3 } } },
      source: { model: "nlp-worker", processed: 1 },
    });
    const budget = { max_tokens: 3, detail_level: "full" };
    expect((await result(verify(id, { checks: ["sample"], budget }))).sample).toEqual({
      output_sample: "done",
    });
    expect(
      await error(verify(id, { checks: ["sample"], budget: { ...budget, max_tokens: 0 } })),
    ).toMatchObject({ code: -32602 });
  });

  test.each([
    ["no check", {}, -32602],
    ["another check", { checks: ["taste"] }, -32602],
    ["another type", { verification_type: "guess" }, -32602],
    ["a malformed hash", { result_hash: "abc" }, -32602],
  ])("%s is refused", async (_, params, code) => {
    expect((await error(verify(id, params))).code).toBe(code);
  });

  test("of an unknown task, and of one without a result", async () => {
    const checks = ["hash"];
    expect(await error(verify("never", { checks }))).toMatchObject({ code: -32009 });
    const params = work("wait");
    await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"), "event: partial");
    expect(await error(verify(params.task.id, { checks }))).toMatchObject({
      code: -32055,
      data: { reason: "TASK_STATE_CONFLICT", metadata: { from: "running" } },
    });
    await result(nekte("nekte.task.cancel", { task_id: params.task.id }));
  });
});
