import { ManualClock } from "@depute/core";
import { expect, test } from "vitest";
import { ServerStarts, type ServerState } from "./server-state.ts";

function create() {
  const clock = new ManualClock();
  const states: ServerState[] = [];
  return { clock, states, starts: new ServerStarts(clock, (state) => states.push(state)) };
}

test("the first crash allows a start at once, the second only after a delay", () => {
  const { clock, starts, states } = create();
  starts.started();
  starts.crashed();
  expect(starts.waitMs).toBe(0);
  starts.started();
  starts.crashed();
  expect(starts.waitMs).toBe(500);
  clock.advance(500);
  expect(starts.waitMs).toBe(0);
  expect(states).toEqual([
    { kind: "up" },
    { kind: "failed", failures: 1, retryAfterMs: 0 },
    { kind: "up" },
    { kind: "failed", failures: 2, retryAfterMs: 500 },
  ]);
});

test("failed starts count like crashes", () => {
  const { starts } = create();
  for (let i = 0; i < 4; i++) starts.notStarted();
  expect([starts.failures, starts.waitMs]).toEqual([4, 2000]);
});

test("a connection of a minute resets the failures", () => {
  const { clock, starts } = create();
  for (let i = 0; i < 5; i++) starts.notStarted();
  starts.started();
  clock.advance(59_999);
  starts.crashed();
  expect(starts.failures).toBe(6);
  starts.started();
  clock.advance(60_000);
  starts.crashed();
  expect([starts.failures, starts.waitMs]).toEqual([1, 0]);
});
