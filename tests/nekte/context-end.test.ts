import { startPlatformProcess } from "@depute/example-sentiment/processes";
import { freePorts } from "depute/ports";
import { afterEach, expect, test } from "vitest";
import { CleanUp, dataFolder } from "../faults/platform.ts";
import { eventsIn, post } from "./plain-http.ts";

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

test("a task whose context was lost with the platform ends, and no worker gets it", {
  timeout: 120_000,
}, async () => {
  const [port = 0] = await freePorts(1);
  const settings = {
    DEPUTE_DATA_DIR: await dataFolder(cleanUp),
    DEPUTE_LOG_LEVEL: "fatal",
    DEPUTE_GATEWAY_PORT: String(port),
  };
  const start = async () => {
    const started = await startPlatformProcess(["start"], settings);
    cleanUp.add(() => started.stop());
    return started;
  };
  const first = await start();
  const url = `http://127.0.0.1:${port}`;
  const rpc = async (name: string, body: object) => JSON.parse(await post(`${url}/depute.${name}`, body));
  await rpc("registry.v1.AgentService/RegisterAgent", { requestId: "r", agent: { id: "echo" } });
  const delegate = (persist: boolean, headers = {}) =>
    post(
      `${url}/nekte/echo`,
      {
        jsonrpc: "2.0",
        id: 1,
        method: "nekte.delegate",
        params: {
          task: { id: `persist ${persist}`, desc: "x", timeout_ms: 30_000 },
          context: { data: { n: 1 }, permissions: { forward: false, persist, derive: false }, ttl_s: 600 },
        },
      },
      headers,
    );
  const streams = [delegate(false), delegate(true)].map((stream) => stream.catch(() => "broken off"));
  let waiting = 0;
  while (waiting < 2) {
    const { tasks = [] } = await rpc("tasks.v1.TaskService/ListTasks", {});
    waiting = tasks.length;
  }
  await first.stop("SIGKILL");
  expect(await Promise.all(streams)).toEqual(["broken off", "broken off"]);
  await start();

  // The task whose context was lost fails. The task whose context still exists goes to the worker.
  const lostEvents = eventsIn(await delegate(false, { "last-event-id": "1" }));
  expect(lostEvents).toEqual([
    { event: "error", data: expect.objectContaining({ task_id: "persist false", code: -32004 }) },
  ]);
  const { assignments } = await rpc("tasks.v1.WorkerService/TakeAssignments", {
    agentId: "echo",
    worker: "w",
    capacity: 9,
  });
  expect(assignments.map(({ task }: { task: object }) => task)).toEqual([
    expect.objectContaining({ externalId: "persist true", input: { n: 1 } }),
  ]);
});
