import { createClient } from "@connectrpc/connect";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { systemClock } from "@depute/core";
import { defineService, type ServiceName } from "@depute/service";
import { createGrpcJsTransport, startTestHost } from "@depute/service/testing";
import { tasks } from "../index.ts";
import { ALICE, BOB, Fakes } from "./fakes.ts";

export { as, collect, type Refusal, refusal } from "@depute/service/testing";

/**
 * Starts the tasks service on a free port, with fakes of the other services in the same process. ALICE and BOB can
 * authenticate with secrets.
 *
 * @param dataDir the folder for the service's files; if absent, a temporary folder that the host removes at its end
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

/**
 * Starts the tasks service as {@link hostTasks} does, in a temporary folder. The clients use gRPC, without code of the
 * platform.
 */
export async function startPlatform() {
  const fakes = new Fakes();
  const host = await hostTasks(fakes);
  return {
    fakes,
    tasks: host.client(TaskService),
    workers: host.client(WorkerService),
    /** Drains and stops the server, but leaves the clients open. */
    stopServer: host.stopServer,
    stop: host.stop,
  };
}

export type Platform = Awaited<ReturnType<typeof startPlatform>>;

/** Connects clients of the tasks service over gRPC. */
export function connect(address: string) {
  const transport = createGrpcJsTransport(address);
  return {
    tasks: createClient(TaskService, transport),
    workers: createClient(WorkerService, transport),
    close: () => transport.close(),
  };
}

function fake(name: ServiceName, fakes: Fakes) {
  return defineService({
    name,
    settings: {},
    descriptors: [],
    start: async () => ({ routes: fakes.routes(name), close: async () => {} }),
  });
}
