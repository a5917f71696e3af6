import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { WorkSuspension } from "@depute/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, introduce, result, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { PYTHON_CLIENT } from "./python-client.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;
if (!hasPython) {
  if (process.env.CI === "true")
    throw new Error("python3 is needed: the tests of NEKTE's events have a client in Python");
  // biome-ignore lint/suspicious/noConsole: a skipped test has to be seen by the person who runs it
  console.warn("*** SKIPPED: python3 is not on the PATH, so that no Python client reads NEKTE's events ***");
}

describe.runIf(hasPython)("a client in Python, of its standard library alone", () => {
  let platform: TestPlatform;

  beforeAll(async () => {
    platform = await startPlatform();
    await introduce(platform, "worker", []);
    platform.work("worker", async (input, { task, progress, partial, saved }) => {
      if (task.description === "suspend" && saved === undefined)
        throw new WorkSuspension("later", { done: 1 });
      await progress(1, 2, "half");
      await partial({ so: "far" });
      return { output: { got: input }, minimal: "done" };
    });
  });
  afterAll(() => platform.stop());

  interface Line {
    readonly status?: number;
    readonly type?: string;
    readonly event?: string;
    readonly id?: string | null;
    // biome-ignore lint/suspicious/noExplicitAny: what a foreign client does not look at, nobody looks at here
    readonly data?: any;
  }

  /** Yields the client's output, line by line. */
  async function* lines(params: object, ...headers: string[]): AsyncGenerator<Line> {
    const { hostname, port } = new URL(platform.url);
    const body = JSON.stringify(call("nekte.delegate", params));
    const argv = ["-c", PYTHON_CLIENT, hostname, port, "/nekte/worker", body, ...headers];
    const client = spawn("python3", argv, { stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface(client.stdout)) yield JSON.parse(line);
  }

  async function all(params: object, ...headers: string[]): Promise<Line[]> {
    const read: Line[] = [];
    for await (const line of lines(params, ...headers)) read.push(line);
    return read;
  }

  const work = (id: string, desc = "x") => ({
    task: { id, desc, timeout_ms: 20_000 },
    context: { data: { n: 1 }, permissions: { forward: false, persist: false, derive: true }, ttl_s: 60.0 },
  });

  test("reads the worker's events and the end, and nothing else", async () => {
    const [head, ...events] = await all(work("whole"));
    expect(head).toEqual({ status: 200, type: "text/event-stream" });
    expect(events.map(({ event, id }) => [event, id])).toEqual([
      ["progress", "4"],
      ["partial", "5"],
      ["complete", "6"],
    ]);
    expect(events.at(-1)?.data).toMatchObject({ task_id: "whole", out: { compact: { got: { n: 1 } } } });
  });

  test("resumes the stream after the last id that it received", async () => {
    await all(work("again"));
    const rest = await all(work("again"), "Last-Event-ID=5");
    expect(rest.slice(1).map(({ event }) => event)).toEqual(["complete"]);
  });

  test("gets suspension and resumption on one stream", async () => {
    const eventLines: (string | undefined)[] = [];
    for await (const { event } of lines(work("suspended", "suspend"))) {
      if (event === undefined) continue;
      eventLines.push(event);
      if (event !== "suspended") continue;
      await result(platform.post("/nekte/worker", call("nekte.task.resume", { task_id: "suspended" })));
    }
    expect(eventLines).toEqual(["suspended", "resumed", "progress", "partial", "complete"]);
  });

  test.each<[string, string[]]>([
    ["without Accept", []],
    ["with Accept: */*", ["Accept=*/*"]],
  ])("reads a refusal as an event, %s", async (_, headers) => {
    const [head, ...events] = await all({ task: { id: "no-time", desc: "x" } }, ...headers);
    expect(head).toEqual({ status: 200, type: "text/event-stream" });
    expect(events).toEqual([
      { event: "error", id: null, data: expect.objectContaining({ task_id: "no-time", code: -32602 }) },
    ]);
  });
});
