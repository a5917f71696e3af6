import { describe, expect, test } from "vitest";
import { error, result } from "../gateway/platform.ts";
import { Scene, TEXT } from "./scene.ts";

const scene = new Scene();
const { countTasks, nekte } = scene;

describe("nekte.discover", () => {
  const HEX = expect.stringMatching(/^[0-9a-f]{8}$/);

  test("at level 0 returns id, cat and h only; an id that several agents offer names its agent", async () => {
    expect(await result(nekte("nekte.discover", { level: 0 }))).toEqual({
      agent: "depute",
      v: "0.2.0",
      caps: [
        { id: "fails", cat: "nlp", h: HEX },
        { id: "long", cat: "nlp", h: HEX },
        { id: "sentiment", cat: "nlp", h: HEX },
        { id: "nlp-worker/shared", cat: "nlp", h: HEX },
        { id: "other/shared", cat: "nlp", h: HEX },
      ],
    });
  });

  test("of one agent acts like a separate server", async () => {
    expect(await result(nekte("nekte.discover", { level: 0 }, "/nekte/other"))).toEqual({
      agent: "other",
      v: "1.2.0",
      caps: [{ id: "shared", cat: "nlp", h: HEX }],
    });
  });

  test("at level 1 adds description and cost", async () => {
    const discovered = await result(nekte("nekte.discover", { level: 1, filter: { id: "sentiment" } }));
    expect(discovered.caps).toEqual([
      { id: "sentiment", cat: "nlp", h: HEX, desc: "does sentiment", cost: { avg_ms: 200 } },
    ]);
  });

  test("at level 2 adds the schemas", async () => {
    const discovered = await result(nekte("nekte.discover", { level: 2, filter: { query: "sentiment" } }));
    expect(discovered.caps).toEqual([
      {
        id: "sentiment",
        cat: "nlp",
        h: HEX,
        desc: "does sentiment",
        cost: { avg_ms: 200 },
        input: TEXT,
        output: { type: "object" },
      },
    ]);
  });

  test.each([
    ["an id as it was listed", { id: "other/shared" }, ["other/shared"]],
    ["the first only, and still names its agent", { id: "shared", top_k: 1 }, ["nlp-worker/shared"]],
    ["explicit nulls", { category: null, query: null, id: "long" }, ["long"]],
    ["another category", { category: "vision" }, []],
  ])("filters: %s", async (_, filter, ids) => {
    const discovered = await result(nekte("nekte.discover", { level: 0, filter }));
    expect(discovered.caps.map(({ id }: { id: string }) => id)).toEqual(ids);
  });
});

describe("nekte.invoke", () => {
  test("returns the output with time and cost", async () => {
    const answer = await result(nekte("nekte.invoke", { cap: "sentiment", in: { text: "so so" } }));
    expect(answer).toEqual({
      out: { label: "mixed", score: 0.62 },
      resolved_level: "compact",
      meta: { ms: expect.any(Number), tokens_used: 8, task_id: expect.any(String) },
    });
  });

  test("accepts the discovered hash, and the first eight digits of any longer prefix", async () => {
    const [{ h }] = (await result(nekte("nekte.discover", { level: 0, filter: { id: "sentiment" } }))).caps;
    await result(nekte("nekte.invoke", { cap: "sentiment", h, in: { text: "x" } }));
  });

  test("with an outdated hash returns the current one and the schema", async () => {
    const [schema] = (await result(nekte("nekte.discover", { level: 2, filter: { id: "sentiment" } }))).caps;
    const before = await countTasks();
    expect(
      await error(nekte("nekte.invoke", { cap: "sentiment", h: "00000000", in: { text: "x" } })),
    ).toEqual({
      code: -32001,
      message: "VERSION_MISMATCH",
      data: { current_hash: schema.h, schema },
    });
    expect(await countTasks()).toBe(before);
  });

  test("of an id that several agents offer needs the agent", async () => {
    expect((await result(nekte("nekte.invoke", { cap: "other/shared", in: {} }))).out).toEqual({ other: {} });
    expect((await result(nekte("nekte.invoke", { cap: "shared", in: {} }, "/nekte/other"))).out).toEqual({
      other: {},
    });
    const ambiguous = await error(nekte("nekte.invoke", { cap: "shared", in: {} }));
    expect(ambiguous).toMatchObject({
      code: -32602,
      data: { reason: "CAPABILITY_AMBIGUOUS", metadata: { candidates: "nlp-worker/shared,other/shared" } },
    });
  });

  test.each([
    ["full", 2000, "full", 4000],
    ["full", 100, "compact", 200],
    ["full", 20, "minimal", undefined],
  ])("steps down from %s within %i tokens to %s", async (detail_level, max_tokens, level, length) => {
    const budget = { max_tokens, detail_level };
    const answer = await result(nekte("nekte.invoke", { cap: "long", in: {}, budget }));
    expect(answer.resolved_level).toBe(level);
    expect(answer.out).toEqual(length === undefined ? "x".repeat(40) : { text: "x".repeat(length) });
  });

  test("states the needed tokens if nothing fits", async () => {
    const budget = { max_tokens: 9, detail_level: "full" };
    expect(await error(nekte("nekte.invoke", { cap: "long", in: {}, budget }))).toMatchObject({
      code: -32003,
      message: "BUDGET_EXCEEDED",
      data: { needed: 10, allowed: 9 },
    });
  });

  test("that fails returns the worker's reason", async () => {
    expect(await error(nekte("nekte.invoke", { cap: "fails", in: {} }))).toEqual({
      code: -32007,
      message: "TASK_FAILED",
      data: { reason: "TASK_FAILED", detail: "there is no lexicon", metadata: { failure: "NO_LEXICON" } },
    });
  });
});
