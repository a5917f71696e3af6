import { ErrorReason, ManualClock } from "@depute/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { MessageRates, readRates } from "./rates.ts";

test("an agent may send a minute's messages at once, and then at the rate of its level", async () => {
  const clock = new ManualClock(0);
  const rates = new MessageRates([2, 4, 6, 8, 10], clock);
  const say = (agent: string, level: number) => rates.take(agent, level);
  for (const [agent, level, count] of [
    ["low", 0, 2],
    ["high", 4, 10],
  ] as const) {
    for (let sent = 0; sent < count; sent++) await say(agent, level);
    await expect(say(agent, level)).rejects.toThrow(`at most ${count} messages a minute`);
  }
  clock.advance(29_999);
  await expect(say("low", 0)).rejects.toThrow(
    expect.objectContaining({
      reason: ErrorReason.LIMIT_EXCEEDED,
      metadata: expect.objectContaining({ retry_after_ms: "1" }),
    }),
  );
  clock.advance(1);
  await say("low", 0);
  await expect(say("low", 0)).rejects.toThrow();
  await say("other", 0);
});

test("property: any minute has at most two minutes' messages", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(5000), { minLength: 1, maxLength: 200 }), async (waits) => {
      const clock = new ManualClock(0);
      const rates = new MessageRates([5], clock);
      const sent: number[] = [];
      for (const wait of waits) {
        clock.advance(wait);
        try {
          await rates.take("a", 0);
          sent.push(clock.now());
        } catch {}
      }
      for (const from of sent) {
        expect(sent.filter((at) => at >= from && at < from + 60_000).length).toBeLessThanOrEqual(10);
      }
    }),
  );
});

test("the setting has five whole numbers", () => {
  expect(readRates(["60", "120", "300", "600", "1200"])).toEqual([60, 120, 300, 600, 1200]);
  for (const wrong of [
    [],
    ["1"],
    ["1", "2", "3", "4", "x"],
    ["1", "2", "3", "4", "0"],
    ["1", "2", "3", "4", "5.5"],
  ]) {
    expect(() => readRates(wrong)).toThrow("DEPUTE_ASP_MESSAGE_RATES");
  }
});
