import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { expect, test } from "vitest";
import { STATE_PLACES, sessionMoves, stateLines } from "./session-states.ts";

const { IDLE, INVITED, INTRODUCED, CONVERSING, AGREEING, CLOSED, ESCALATED, FAILED } = SessionState;

test("every state of the protocol has its own place in the diagram", () => {
  const states = Object.values(SessionState).filter((each) => typeof each === "number" && each !== 0);
  expect([...STATE_PLACES.keys()].sort((one, other) => one - other)).toEqual(states);
  expect(new Set([...STATE_PLACES.values()].map(String)).size).toBe(states.length);
});

test.each([
  [IDLE, INVITED, false],
  [INVITED, FAILED, false],
  [CONVERSING, AGREEING, true],
  [CONVERSING, ESCALATED, true],
  [ESCALATED, CLOSED, false],
])("the protocol's table permits the transition %i to %i, mutual: %s", (from, to, isMutual) => {
  const line = stateLines().find(
    (each) => (each.from === from && each.to === to) || (isMutual && each.from === to && each.to === from),
  );
  expect(line?.isMutual).toBe(isMutual);
});

test("the transitions of a session are the messages that change its state", () => {
  const step = (ordinal: number, state: SessionState) => ({ ordinal, state, sender: "agent://a.com/b" });
  const steps = [step(1, INVITED), step(2, INVITED), step(3, INTRODUCED), step(0, FAILED)];
  expect(sessionMoves(steps).map(({ from, state, ordinal }) => [from, state, ordinal])).toEqual([
    [IDLE, INVITED, 1],
    [INVITED, INTRODUCED, 3],
    [INTRODUCED, FAILED, 0],
  ]);
});

test("a page that begins in the middle of a session shows no transition before it", () => {
  expect(sessionMoves([{ ordinal: 40, state: CONVERSING, sender: "" }])).toEqual([]);
});
