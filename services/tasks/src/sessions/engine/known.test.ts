import { idleSession, type Session } from "@depute/asp";
import { expect, test } from "vitest";
import { KnownSessions } from "./known.ts";

const parties = {
  principals: new Map([["agent://a.example/x/a", "key"]]),
  levels: new Map(),
  registryIds: new Map([["agent://a.example/x/a", "a"]]),
};
const session = (sessionId: string, messageCount = 1): Session => ({
  ...idleSession(sessionId, 0),
  messageCount,
});

test("a session is known with its newest state and those who came last", () => {
  const known = new KnownSessions();
  known.note(session("a"));
  expect(known.get("a")).toBeUndefined();
  known.note(session("a"), parties);
  known.note(session("a", 2));
  expect(known.get("a")).toMatchObject({ session: { messageCount: 2 }, ...parties });
});

test("what is kept is bounded: the sessions, oldest first, and the objects of each", () => {
  const known = new KnownSessions();
  for (let n = 0; n <= 1000; n++) known.note(session(`s${n}`), parties);
  expect([known.get("s0"), known.get("s1")?.session.sessionId]).toEqual([undefined, "s1"]);
  const objects = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`o${n}`, {}]));
  known.note({ ...session("s1", 2), objects } as unknown as Session);
  expect(known.get("s1")).toBeUndefined();
});
