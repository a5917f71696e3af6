import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { SharedContextSchema } from "@depute/contracts/depute/tasks/v1/context_pb";
import { TaskSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { toTimestamp } from "@depute/core";
import { describe, expect, test } from "vitest";
import { handOver, isSameVersion, readTerms, sharedApart, termsOf } from "./hand-over.ts";

const NOW = Date.UTC(2026, 0, 1);
const task = (init: MessageInitShape<typeof TaskSchema> = {}) =>
  create(TaskSchema, { id: "t", description: "say hello", ...init });
const bytes = (json: unknown) => new TextEncoder().encode(JSON.stringify(json));
const text = (data: Uint8Array | undefined) => new TextDecoder().decode(data);
const context = (data: unknown, leftMs = 60_000) =>
  create(SharedContextSchema, {
    id: "server's",
    externalId: "mine",
    expireTime: toTimestamp(NOW + leftMs),
    envelope: {
      id: "mine",
      data: bytes(data),
      permissions: { forward: false, persist: false, derive: true },
      ttlS: 3600,
      scope: { capabilities: ["sentiment"] },
    },
  });

describe("the terms of a task at an endpoint", () => {
  test.each<[string, number, number]>([
    ["have the remaining time", 30_000, 30_000],
    ["have at least a millisecond", -5, 1],
    ["have at most NEKTE's maximum time", 2_592_000_000, 2 ** 31 - 1],
  ])("%s", (_, leftMs, timeoutMs) => {
    expect(termsOf(task(), [], NOW, NOW + leftMs)).toMatchObject({ timeoutMs });
  });

  test("have the context's time to live, and the task's budget or NEKTE's default", () => {
    expect(termsOf(task(), [context(1)], NOW, NOW + 1000)).toMatchObject({ ttlS: 60, maxTokens: 500 });
    const budget = { maxTokens: 9, detailLevel: "minimal" };
    expect(termsOf(task({ budget }), [context(1, 10)], NOW, NOW + 1000)).toMatchObject({
      ttlS: 1,
      maxTokens: 9,
      detailLevel: "minimal",
    });
  });

  test("are stored and read without a change", () => {
    const terms = termsOf(task(), [], NOW, NOW + 1000);
    expect(readTerms(JSON.stringify(terms))).toEqual(terms);
    for (const other of ["1", "{}", '{"timeoutMs":"1"}']) expect(readTerms(other)).toBeUndefined();
  });
});

describe("a task at an endpoint", () => {
  const terms = { timeoutMs: 1000, ttlS: 60, maxTokens: 500, detailLevel: "compact" };

  test("has the input as its context, and the other contexts are shared before it", () => {
    const { context: carried } = handOver(task(), { a: 1 }, [context("first")], "r", terms);
    expect(text(carried?.data)).toBe('{"a":1}');
    expect(carried?.permissions).toMatchObject({ forward: false, persist: true, derive: true });
    const [apart] = sharedApart([context("first")], 0, "r", NOW);
    expect(apart).toMatchObject({ id: "r:1", ttlS: 60, permissions: { persist: false } });
    expect(text(apart?.data)).toBe('"first"');
    expect(apart?.scope?.capabilities).toEqual(["sentiment"]);
  });

  test("has its first context if there is no input, under the context's own permissions", () => {
    const request = handOver(task(), undefined, [context("first"), context("second")], "r", terms);
    expect(request.task).toMatchObject({
      id: "r",
      desc: "say hello",
      timeoutMs: 1000,
      budget: { maxTokens: 500 },
    });
    expect(request.context).toMatchObject({
      id: "r:0",
      ttlS: 60,
      permissions: { persist: false, derive: true },
    });
    expect(text(request.context?.data)).toBe('"first"');
    expect(
      sharedApart([context("first"), context("second")], 1, "r", NOW).map(({ data }) => text(data)),
    ).toEqual(['"second"']);
  });

  test("has an empty context with null data if the context has expired", () => {
    const { context: carried } = handOver(task(), undefined, "gone", "r", terms);
    expect(carried).toMatchObject({ id: "r:0", ttlS: 60, permissions: { persist: false } });
    expect(text(carried?.data)).toBe("null");
    expect(text(handOver(task(), 1, "gone", "r", terms).context?.data)).toBe("1");
  });

  test("has no context without input and contexts; its description contains the review comment", () => {
    const request = handOver(task({ reviewComment: "shorter" }), undefined, [], "r", terms);
    expect(request.context).toBeUndefined();
    expect(request.task?.desc).toBe("say hello\n\nReview of an earlier result: shorter");
  });
});

test.each([
  ["0a1b2c3d", "0a1b2c3d", true],
  ["0a1b2c3d", "0A1B2C3D44556677", true],
  ["0a1b2c3d44556677", "0a1b2c3d", true],
  ["0a1b2c3d", "0a1b2c3e", false],
  ["0a1b2c3d", "0a1b", false],
  ["", "", false],
])("%s and %s are one version: %s", (ours, theirs, same) => {
  expect(isSameVersion(ours, theirs)).toBe(same);
});
