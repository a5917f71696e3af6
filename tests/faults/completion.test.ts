import { setTimeout as pause } from "node:timers/promises";
import { connectTo, type DeputeClients } from "@depute/client";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { startPlatformProcess, startServiceProcess } from "@depute/example-sentiment/processes";
import { freePorts } from "depute/ports";
import { afterEach, expect, test, vi } from "vitest";
import { delegateosCast, type Stage } from "../gateway/delegateos-scene.ts";
import { call } from "../gateway/platform.ts";
import { CleanUp, dataFolder } from "./platform.ts";

const SERVICES = ["registry", "tasks", "tokens", "verifier", "gateway"] as const;
type Service = (typeof SERVICES)[number];

const UNTOUCHED = { delegation: DelegationStatus.ACTIVE, task: TaskStatus.PENDING, isStored: false };
const DONE = { delegation: DelegationStatus.COMPLETED, task: TaskStatus.COMPLETED, isStored: true };

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

function stageAt(url: string): Stage {
  return {
    clients: connectTo(url) as DeputeClients & Stage["clients"],
    post: (path, body) =>
      fetch(`${url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
  };
}

/** Sends a completion and ignores errors, because the test kills processes during the call. */
function send(stage: Stage, params: object): Promise<unknown> {
  return stage.post("/delegateos", call("delegateos/complete", params)).catch(() => undefined);
}

test("a verifier that is killed between two steps finishes the completion after its restart", {
  timeout: 120_000,
}, async () => {
  const ports = await freePorts(SERVICES.length);
  const env = Object.fromEntries([
    ["DEPUTE_DATA_DIR", await dataFolder(cleanUp)],
    ["DEPUTE_LOG_LEVEL", "fatal"],
    ["DEPUTE_INTERNAL_SECRET", "between-ourselves"],
    ...SERVICES.flatMap((name, n) => [
      [`DEPUTE_${name.toUpperCase()}_PORT`, String(ports[n])],
      [`DEPUTE_${name.toUpperCase()}_URL`, `http://127.0.0.1:${ports[n]}`],
    ]),
  ]);
  const start = async (name: Service) => {
    const started = await startServiceProcess(name, env);
    cleanUp.add(() => started.stop("SIGKILL"));
    return started;
  };
  const running = new Map(
    await Promise.all(SERVICES.map(async (name) => [name, await start(name)] as const)),
  );
  const signal = (name: Service, word: NodeJS.Signals) => process.kill(running.get(name)?.pid ?? 0, word);
  const stage = stageAt(`http://127.0.0.1:${ports.at(-1)}`);
  const cast = await delegateosCast(() => stage, Date.now);

  const delegated = await cast.handedOver();
  const params = cast.attested(delegated);
  // The first step calls the tasks service, which is stopped and does not answer. The verifier is killed during
  // that call.
  signal("tasks", "SIGSTOP");
  cleanUp.add(async () => void signal("tasks", "SIGCONT"));
  const sent = send(stage, params);
  await pause(1500);
  await running.get("verifier")?.stop("SIGKILL");
  signal("tasks", "SIGCONT");
  await sent;
  running.set("verifier", await start("verifier"));
  await vi.waitFor(async () => expect(await cast.state(delegated, params)).toEqual(DONE), {
    timeout: 20_000,
  });
  const { id: taskId } = await cast.taskOf(delegated);
  const kinds: string[] = [];
  for await (const { taskEvent: event } of stage.clients.tasks.watchTask({ taskId })) {
    kinds.push(event?.payload.case ?? "");
  }
  expect(kinds).toEqual(["created", "completed"]);
});

test("a platform that is killed at any moment has completed both or neither", {
  timeout: 180_000,
}, async () => {
  const settings = {
    DEPUTE_DATA_DIR: await dataFolder(cleanUp),
    DEPUTE_LOG_LEVEL: "fatal",
    DEPUTE_GATEWAY_PORT: "0",
  };
  const start = async () => {
    const started = await startPlatformProcess(["start"], settings);
    cleanUp.add(() => started.stop("SIGKILL"));
    return started;
  };
  let platform = await start();
  let stage = stageAt(platform.about);
  const cast = await delegateosCast(() => stage, Date.now);
  for (const delayMs of [4, 10, 20]) {
    const delegated = await cast.handedOver();
    const params = cast.attested(delegated);
    const sent = send(stage, params);
    await pause(delayMs);
    await platform.stop("SIGKILL");
    await sent;
    platform = await start();
    stage = stageAt(platform.about);
    await vi.waitFor(
      async () => {
        const state = await cast.state(delegated, params);
        expect(state).toEqual(state.delegation === DelegationStatus.ACTIVE ? UNTOUCHED : DONE);
      },
      { timeout: 20_000 },
    );
    // In either case the delegatee may repeat the completion.
    const answer = (await stage.post("/delegateos", call("delegateos/complete", params))).json();
    expect(await answer).toMatchObject({ result: { status: "completed" } });
    expect(await cast.state(delegated, params)).toEqual(DONE);
  }
});
