import { createClient } from "@connectrpc/connect";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { type FieldViolation, reasonName, systemClock } from "@depute/core";
import { defineService, fromConnectError, type ServiceName } from "@depute/service";
import { createGrpcJsTransport, startTestHost } from "@depute/service/testing";
import { tasks } from "../index.ts";
import { ALICE, BOB, Fakes } from "./fakes.ts";

export { as } from "@depute/service/testing";

/**
 * The tasks service at a free port, with fakes of the others in the same process. ALICE and BOB have secrets.
 *
 * @param dataDir the folder for its files; one of its own, removed at the end, when absent
 */
export async function hostTasks(fakes: Fakes, dataDir?: string) {
  return startTestHost({
    module: tasks,
    fakes: (["registry", "tokens", "verifier"] as const).map((name) => fake(name, fakes)),
    principals: [ALICE, BOB],
    clock: systemClock,
    ...(dataDir === undefined ? {} : { dataDir }),
  });
}

/** The same on a folder of its own, with clients that share no code with it. */
export async function startPlatform() {
  const fakes = new Fakes();
  const host = await hostTasks(fakes);
  return {
    fakes,
    tasks: host.client(TaskService),
    workers: host.client(WorkerService),
    /** Drains and stops the server, and leaves the clients open. */
    stopServer: host.stopServer,
    stop: host.stop,
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
