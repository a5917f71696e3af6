import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { connectTo } from "@depute/client";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { startPlatformProcess } from "@depute/example-sentiment/processes";
import { describe, expect, test } from "vitest";
import { startApart, startPlatform, value } from "../gateway/platform.ts";
import { EndpointScene, FLAGS, kinds, lastOf, register, until } from "./endpoint-scene.ts";
import { serveHttp, TextAgent } from "./text-server.ts";

const scene = new EndpointScene();

describe("the platform", () => {
  test("resumes tasks at endpoints after a restart", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "depute-endpoints-"));
    const agent = new TextAgent({ numbered: true });
    const server = await serveHttp(agent);
    let goOn = () => {};
    agent.script = async (_, tell) => {
      tell.progress(1, 2);
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      tell.progress(2, 2);
      tell.complete({ full: { done: true } });
    };
    const first = await startPlatform([...FLAGS, "--data-dir", dataDir]);
    try {
      const agentId = await register(server.endpoint, first);
      const draft = { agentId, description: "x", externalId: "outlives" };
      await first.clients.tasks.createTask({ requestId: "1", draft });
      const name = { externalId: "outlives" };
      await until(async () => (await first.clients.tasks.getTask(name)).task?.progress?.processed === 1);
      await first.stop();
      const second = await startPlatform([...FLAGS, "--data-dir", dataDir]);
      try {
        await until(() => agent.callsOf("nekte.delegate").length === 2);
        goOn();
        const { task } = await second.clients.tasks.getTask(name);
        const events: TaskEvent[] = [];
        for await (const { taskEvent: event } of second.clients.tasks.watchTask({ taskId: task?.id ?? "" })) {
          if (event !== undefined) events.push(event);
        }
        const eventKinds = kinds(events).filter((kind) => kind === "progress" || kind === "completed");
        expect(eventKinds).toEqual(["progress", "progress", "completed"]);
        expect(agent.callsOf("nekte.task.status").length).toBeGreaterThan(0);
        // The agent has one task, however often the platform resumed it.
        expect(agent.tasks.size).toBe(1);
      } finally {
        await second.stop();
      }
    } finally {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test("resumes tasks at endpoints after a kill, under the same lease", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "depute-endpoints-"));
    const agent = new TextAgent({ numbered: true });
    const server = await serveHttp(agent);
    let goOn = () => {};
    agent.script = async (_, tell) => {
      tell.progress(1, 2);
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      tell.complete({ full: { done: true } });
    };
    const args = ["start", ...FLAGS, "--data-dir", dataDir, "--log-level", "fatal", "--gateway-port", "0"];
    const start = async () => {
      const helper = await startPlatformProcess(args);
      return { helper, clients: connectTo(helper.about) };
    };
    const first = await start();
    try {
      const agentId = await register(server.endpoint, first);
      const draft = { agentId, description: "x", externalId: "outlives" };
      const { task } = await first.clients.tasks.createTask({ requestId: "1", draft });
      const name = { taskId: task?.id ?? "" };
      await until(async () => (await first.clients.tasks.getTask(name)).task?.progress?.processed === 1);
      await first.helper.stop("SIGKILL");
      const second = await start();
      try {
        await until(() => agent.callsOf("nekte.delegate").length === 2);
        goOn();
        const events: TaskEvent[] = [];
        for await (const { taskEvent: event } of second.clients.tasks.watchTask({ taskId: name.taskId })) {
          if (event !== undefined) events.push(event);
        }
        expect(kinds(events)).toEqual(["created", "accepted", "started", "progress", "completed"]);
        expect(agent.tasks.size).toBe(1);
      } finally {
        await second.helper.stop();
      }
    } finally {
      await first.helper.stop("SIGKILL");
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  }, 60_000);

  test("calls agents from the tasks service, behind a separate gateway and with credentials required", async () => {
    const agent = new TextAgent();
    const server = await serveHttp(agent);
    const file = join(mkdtempSync(join(tmpdir(), "depute-endpoints-")), "credentials.json");
    const principal = generateKeypair(engine).principal.id;
    const sha256 = createHash("sha256").update("secret").digest("hex");
    writeFileSync(file, JSON.stringify([{ principal, sha256 }]));
    const apart = await startApart([...FLAGS, "--auth", "required", "--credentials-file", file]);
    const headers = { authorization: "Bearer secret" };
    try {
      const record = { id: "remote", principal, nekte: { endpoint: server.endpoint } };
      await apart.clients.agents.registerAgent({ requestId: "1", agent: record }, { headers });
      const draft = { agentId: "remote", description: "x" };
      const wait = durationFromMs(20_000);
      const { task } = await apart.clients.tasks.createTask({ requestId: "1", draft, wait }, { headers });
      expect(task?.output?.minimal).toBe("done");
    } finally {
      await apart.stop();
      await server.stop();
      rmSync(dirname(file), { recursive: true, force: true });
    }
  });

  test("calls no endpoint without configured hosts: the task waits for a worker", async () => {
    const agent = new TextAgent();
    const server = await serveHttp(agent);
    const closed = await startPlatform();
    try {
      const agentId = await register(server.endpoint, closed);
      closed.work(agentId, async () => ({ output: "by its own worker" }));
      const draft = { agentId, description: "x" };
      const wait = durationFromMs(20_000);
      const { task } = await closed.clients.tasks.createTask({ requestId: "1", draft, wait });
      expect(task?.output?.full).toEqual(value("by its own worker"));
      expect(agent.calls).toEqual([]);
    } finally {
      await closed.stop();
      await server.stop();
    }
  });

  test("calls no agent at its own address: the task waits for a worker", async () => {
    const { port } = new URL(scene.platform.url);
    const addresses = [
      `${scene.platform.url}/nekte/x`,
      scene.platform.url.replace(/^http/, "grpc"),
      `http://localhost:${port}/nekte/x`,
    ];
    for (const endpoint of addresses) {
      const agentId = await register(endpoint, scene.platform);
      scene.platform.work(agentId, async () => ({ output: "by its own worker" }));
      expect(lastOf(await scene.eventsOf({ agentId, description: "x" }))?.case).toBe("completed");
    }
  });

  test("refuses agents at other addresses than its registry's settings allow", async () => {
    const strict = await startPlatform(["--agent-endpoint-origins", "grpc://127.0.0.1:7,http://127.0.0.1:7"]);
    try {
      await register("grpc://127.0.0.1:7/worker", strict);
      await register("http://127.0.0.1:7/nekte", strict);
      for (const endpoint of ["grpc://127.0.0.1:8", "grpcs://127.0.0.1:7", "https://127.0.0.1:7"]) {
        await expect(register(endpoint, strict)).rejects.toThrow("agent.nekte.endpoint");
      }
    } finally {
      await strict.stop();
    }
  });
});
