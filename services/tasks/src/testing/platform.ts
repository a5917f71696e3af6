import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { type FieldViolation, reasonName } from "@depute/core";
import {
  commonSettings,
  createLogger,
  defineService,
  fromConnectError,
  hostServices,
  readSettings,
  type ServiceName,
} from "@depute/service";
import { createGrpcJsTransport } from "@depute/service/testing";
import { tasks } from "../index.ts";
import { ALICE, BOB, Fakes } from "./fakes.ts";

const about = { name: "test" };

/** The tasks service at a free port, with fakes of the others in the same process. ALICE and BOB have secrets. */
export async function hostTasks(dataDir: string, fakes: Fakes) {
  const credentialsFile = join(dataDir, "credentials.json");
  const secrets = [ALICE, BOB].map((principal) => ({
    principal,
    sha256: createHash("sha256").update(principal).digest("hex"),
  }));
  writeFileSync(credentialsFile, JSON.stringify(secrets));
  const args = ["--data-dir", dataDir, "--credentials-file", credentialsFile, "--tasks-port", "0"];
  const bus = createBus({
    onError: (error) => {
      throw error;
    },
  });
  const host = await hostServices({
    modules: [
      { module: tasks, settings: readSettings(tasks.settings, [], about), listen: true },
      ...(["registry", "tokens", "verifier"] as const).map((name) => ({
        module: fake(name, fakes),
        settings: {},
        listen: false,
      })),
    ],
    common: readSettings(commonSettings, args, about),
    bus,
    log: createLogger({ level: "silent", name: "test" }),
  });
  return {
    address: new URL(host.urls.tasks ?? "").host,
    async stop() {
      await host.stop();
      await bus.close();
    },
  };
}

/** The same on a folder of its own, with a client that shares no code with it. */
export async function startPlatform() {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-tasks-"));
  const fakes = new Fakes();
  const host = await hostTasks(dataDir, fakes);
  const clients = connect(host.address);
  return {
    fakes,
    ...clients,
    /** Drains and stops the server, and leaves the clients open. */
    stopServer: () => host.stop(),
    async stop() {
      clients.close();
      await host.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;

/** Clients over gRPC. */
export function connect(address: string) {
  const transport = createGrpcJsTransport(address);
  return {
    tasks: createClient(TaskService, transport),
    workers: createClient(WorkerService, transport),
    close: () => transport.close(),
  };
}

/** Call options of a caller with a principal of its own. */
export function as(principal: string) {
  return { headers: { authorization: `Bearer ${principal}` } };
}

/** All of a stream, or its first items. */
export async function collect<T>(stream: AsyncIterable<T>, atMost = Number.POSITIVE_INFINITY): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) {
    items.push(item);
    if (items.length >= atMost) break;
  }
  return items;
}

/** How a call was refused: the reason's name, its metadata, and the fields at fault. */
export interface Refusal {
  readonly reason: string;
  readonly metadata: Record<string, string>;
  readonly fields: string[];
  readonly violations: FieldViolation[];
}

/** The refusal of a call, or of a stream, that has to fail. */
export async function refusal(call: Promise<unknown> | AsyncIterable<unknown>): Promise<Refusal> {
  const whole: Promise<unknown> = Symbol.asyncIterator in call ? collect(call) : call;
  const answer = await whole.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in answer) throw new Error(`not refused: ${String(answer.value)}`);
  const { reason, metadata, violations } = fromConnectError(answer.error);
  return { reason: reasonName(reason), metadata, violations, fields: violations.map(({ field }) => field) };
}

function fake(name: ServiceName, fakes: Fakes) {
  return defineService({
    name,
    settings: {},
    descriptors: [],
    start: async () => ({ routes: fakes.routes(name), close: async () => {} }),
  });
}
