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

test("a known session has its newest state and its latest parties", () => {
  const sessions = new KnownSessions();
  sessions.note(session("a"));
  expect(sessions.get("a")).toBeUndefined();
  sessions.note(session("a"), parties);
  sessions.note(session("a", 2));
  expect(sessions.get("a")).toMatchObject({ session: { messageCount: 2 }, ...parties });
});

test("the cache is bounded: the sessions, oldest first, and the objects of each session", () => {
  const sessions = new KnownSessions();
  for (let n = 0; n <= 1000; n++) sessions.note(session(`s${n}`), parties);
  expect([sessions.get("s0"), sessions.get("s1")?.session.sessionId]).toEqual([undefined, "s1"]);
  const objects = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`o${n}`, {}]));
  sessions.note({ ...session("s1", 2), objects } as unknown as Session);
  expect(sessions.get("s1")).toBeUndefined();
});
