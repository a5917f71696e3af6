import { expect, test } from "vitest";
import { KnownTasks } from "./known-tasks.ts";
import { TaskHandles } from "./task-handles.ts";
import { FakeSeal } from "./testing/parts.ts";

const right = (resource: string) => ({ namespace: "data", action: "query", resource });
const facts = (resources: readonly string[] = ["one"]) => ({
  tool: "slow",
  rights: resources.map(right),
  caller: ["holder", "login"] as const,
  connection: "{}",
});
const CALLER = ["holder", "login"] as const;

test("an id opens with its facts, for the same caller and server, also in another process with the key", () => {
  const seal = new FakeSeal();
  const id = new TaskHandles(seal, "jobs").seal(facts(), "task-1");
  expect(new TaskHandles(seal, "jobs").open(id, CALLER)).toEqual({ ...facts(), taskId: "task-1" });
  expect(new TaskHandles(seal, "others").open(id, CALLER)).toBeUndefined();
  expect(new TaskHandles(new FakeSeal(), "jobs").open(id, CALLER)).toBeUndefined();
});

test.each([[["other", "login"]], [["holder", ""]], [["holder", "other"]], [["", ""]]] as const)(
  "an id does not open for %j",
  (caller) => {
    const handles = new TaskHandles(new FakeSeal(), "jobs");
    expect(handles.open(handles.seal(facts(), "task-1"), caller)).toBeUndefined();
  },
);

test.each([undefined, 7, "", "x".repeat(8193)])("the value %j is not an id", (id) => {
  expect(new TaskHandles(new FakeSeal(), "jobs").open(id, CALLER)).toBeUndefined();
});

test.each([undefined, null, 7, "", "x".repeat(513)])(
  "a server's own id %j gets no id of the proxy",
  (taskId) => {
    expect(new TaskHandles(new FakeSeal(), "jobs").seal(facts(), taskId)).toBeUndefined();
  },
);

test("a call fits if its rights leave room for the server's id", () => {
  const handles = new TaskHandles(new FakeSeal(), "jobs");
  expect(handles.fits(facts(["x".repeat(1024), "x".repeat(1024)]))).toBe(true);
  expect(handles.seal(facts(["x".repeat(1024), "x".repeat(1024)]), "x".repeat(512))).toBeDefined();
  expect(handles.seal(facts(["x".repeat(1024), "x".repeat(1024)]), "\u0000".repeat(512))).toBeUndefined();
  expect(handles.fits(facts(["é".repeat(1024), "é".repeat(1024)]))).toBe(false);
  expect(handles.fits(facts(Array.from({ length: 64 }, (_, i) => `/folder/${i}`)))).toBe(false);
});

test("ten thousand tasks are known, and the oldest is evicted first", () => {
  const known = new KnownTasks();
  const task = (id: string) => ({ id, owner: "caller", rights: [], presentation: undefined });
  for (let i = 0; i <= 10_000; i++) known.add("{}", `task-${i}`, task(`id-${i}`));
  expect(known.get("{}", "task-0")).toBeUndefined();
  expect(known.get("{}", "task-1")).toEqual(task("id-1"));
  expect(known.get("{}", "task-10000")).toEqual(task("id-10000"));
  // Two connections of a server may use the same task id, because each numbers its own tasks.
  expect(known.get('{"elicitation":{}}', "task-1")).toBeUndefined();
});
