import { ManualClock } from "@depute/core";
import { describe, expect, test } from "vitest";
import { bench, type Json, LIST, refusal, text, token } from "./testing/parts.ts";

const RIGHT = { namespace: "data", action: "query", resource: "one" };
const ANSWERS = { ...LIST, "tools/call": ({ name }: Json) => text(`${name} was called`) };
const limited = (limits: object, more: object = {}) => ({
  map: { tools: { fixed: { ...RIGHT, ...more, limits } } },
});
const calls = ({ received }: { received: readonly { method: string }[] }) =>
  received.filter(({ method }) => method === "tools/call").length;

describe("the rate of a tool", () => {
  test("allows a minute's calls at once, and then one for each fraction of the minute", async () => {
    const clock = new ManualClock();
    const { call } = bench(ANSWERS, limited({ callsPerMinute: 3 }), clock);
    for (let i = 0; i < 3; i++) await call("fixed");
    expect(await refusal(call("fixed"))).toMatchObject({
      code: -32056,
      data: {
        reason: "LIMIT_EXCEEDED",
        metadata: { limit: "tool_calls_per_minute", max: "3", retry_after_ms: "20000" },
      },
    });
    clock.advance(20_000);
    await call("fixed");
    await refusal(call("fixed"));
  });

  test("does not apply to other tools", async () => {
    const { call } = bench(ANSWERS, {
      map: { tools: { fixed: { ...RIGHT, limits: { callsPerMinute: 1 } }, paid: RIGHT } },
    });
    await call("fixed");
    await refusal(call("fixed"));
    expect(await call("paid")).toEqual(text("paid was called"));
  });

  test("applies to each principal", async () => {
    const started = bench(ANSWERS, limited({ callsPerMinute: 1 }));
    await started.call("fixed");
    started.authoriser.principal = "another";
    expect(await started.call("fixed")).toEqual(text("fixed was called"));
    started.authoriser.principal = "holder";
    await refusal(started.call("fixed"));
  });

  test("is one for all callers without a token", async () => {
    const { proxy } = bench(ANSWERS, { ...limited({ callsPerMinute: 1 }), requireToken: false });
    const call = (session: string) =>
      proxy.handle({ method: "tools/call", params: { name: "fixed" }, session });
    await call("a");
    expect(await refusal(call("b"))).toMatchObject({ code: -32056 });
  });

  test("counts only admitted calls", async () => {
    const { call } = bench(ANSWERS, limited({ callsPerMinute: 1 }));
    await refusal(call("fixed", {}, token("two")));
    expect(await call("fixed")).toEqual(text("fixed was called"));
  });
});

test("the rate of a server applies to all its tools and methods", async () => {
  const answers = { ...ANSWERS, "resources/read": () => ({ contents: [] }) };
  const { call, proxy } = bench(answers, { limits: { callsPerMinute: 2 } });
  await call("fixed");
  await proxy.handle({
    method: "resources/read",
    params: { uri: "note://one" },
    presentation: token("note/one"),
  });
  expect(await refusal(call("paid"))).toMatchObject({
    data: { metadata: { limit: "server_calls_per_minute", max: "2" } },
  });
});

test("concurrent calls are limited, and an ended or failed call frees a place", async () => {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  let isFirst = true;
  const { call } = bench(
    {
      ...LIST,
      "tools/call": () => {
        if (!isFirst) return text("done");
        isFirst = false;
        return promise;
      },
    },
    limited({ concurrentCalls: 1 }),
  );
  const first = call("fixed");
  await expect
    .poll(() =>
      refusal(call("fixed")).then(
        ({ data }) => data.metadata?.limit,
        () => "not refused",
      ),
    )
    .toBe("tool_concurrent_calls");
  reject(new Error("broken"));
  await refusal(first);
  expect(await call("fixed")).toEqual(text("done"));
  resolve(undefined);
});

test("arguments above the size never reach the server", async () => {
  const started = bench(ANSWERS, limited({ argumentBytes: 16 }));
  await started.call("fixed", { a: "12345678" });
  const { data } = await refusal(started.call("fixed", { a: "äääääääää" }));
  expect(data.metadata).toEqual({ limit: "tool_argument_bytes", max: "16" });
  expect(calls(started)).toBe(1);
});

describe("the cost of a tool", () => {
  const metered = (limits: object) => limited(limits, { cost: { most: 100, reported: "/_meta/cost" } });
  const answer = (cost: number) => ({
    ...LIST,
    "tools/call": () => ({ ...text("done"), _meta: { cost } }),
  });

  test("is limited for each hour", async () => {
    const clock = new ManualClock();
    const started = bench(answer(100), metered({ microcentsPerHour: 150 }), clock);
    await started.call("fixed");
    const { data } = await refusal(started.call("fixed"));
    expect(data.metadata).toEqual({
      limit: "tool_microcents_per_hour",
      max: "150",
      retry_after_ms: "1200000",
    });
    expect(calls(started)).toBe(1);
    await expect.poll(() => started.authoriser.settled).toEqual(["1:100 commits 100"]);
    clock.advance(1_200_000);
    await started.call("fixed");
  });

  test("counts the charge, not the reservation", async () => {
    const upstream = { ...metered({ microcentsPerHour: 150 }), callsPerReservation: 1 };
    const started = bench(answer(25), upstream, new ManualClock());
    await started.call("fixed");
    await expect.poll(() => started.authoriser.settled).toHaveLength(1);
    await started.call("fixed");
    await expect.poll(() => started.authoriser.settled).toHaveLength(2);
    await started.call("fixed");
    await expect.poll(() => started.authoriser.settled).toHaveLength(3);
    expect(await refusal(started.call("fixed"))).toMatchObject({ code: -32056 });
  });

  test("counts nothing for a call without sufficient budget", async () => {
    const started = bench(answer(100), metered({ microcentsPerHour: 100 }), new ManualClock());
    started.authoriser.budget = 0;
    expect(await refusal(started.call("fixed"))).toMatchObject({ code: -32001 });
    started.authoriser.budget = 100;
    await started.call("fixed");
  });

  test("above the limit in one call is refused without a retry time", async () => {
    const { call } = bench(answer(100), metered({ microcentsPerHour: 99 }));
    const { data } = await refusal(call("fixed"));
    expect(data.metadata).toEqual({ limit: "tool_microcents_per_hour", max: "99" });
  });
});

test("each call is counted with its outcome", async () => {
  const { call, observed } = bench(
    { ...LIST, "tools/call": ({ arguments: args }: Json) => ({ ...text("done"), ...args }) },
    limited({ callsPerMinute: 2 }),
  );
  await call("fixed");
  await call("fixed", { isError: true });
  await refusal(call("fixed"));
  await refusal(call("fixed", {}, token("two")));
  await refusal(call("unknown to the map"));
  expect(observed.map(({ name, outcome }) => [name, outcome])).toEqual([
    ["fixed", "answered"],
    ["fixed", "tool_error"],
    ["fixed", "limited"],
    ["fixed", "denied"],
    ["", "denied"],
  ]);
});
