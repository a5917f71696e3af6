import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { type Lease, WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";

/** The delegate in the benchmarks. */
export const AGENT = "worker";

/** The tasks service in a separate process, with @grpc/grpc-js clients. */
export interface Platform {
  readonly tasks: Client<typeof TaskService>;
  readonly workers: Client<typeof WorkerService>;
  /** The address at which the tasks service listens. */
  readonly address: string;
  readonly dataDir: string;
  /** The server's process. */
  readonly pid: number | undefined;
  /** Returns the server's memory after garbage collection, in bytes. */
  rss(): Promise<number>;
  /** Ends the process, and starts another process on the same files. */
  restart(whileDown: () => void): Promise<Platform>;
  close(): Promise<void>;
}

/** @param env further environment variables of the server, such as settings of its database */
export async function startPlatform(
  dataDir = mkdtempSync(join(tmpdir(), "depute-bench-")),
  env: NodeJS.ProcessEnv = {},
): Promise<Platform> {
  const { child, addresses } = await startServer(dataDir, env);
  const transport = createGrpcJsTransport(addresses.tasks);
  const registry = createGrpcJsTransport(addresses.registry ?? "");
  await createClient(AgentService, registry).registerAgent({ requestId: "bench", agent: { id: AGENT } });
  const stop = () => {
    transport.close();
    registry.close();
    return ended(child);
  };
  return {
    tasks: createClient(TaskService, transport),
    workers: createClient(WorkerService, transport),
    address: addresses.tasks,
    dataDir,
    pid: child.pid,
    rss: () => rssOf(child),
    async restart(whileDown) {
      await stop();
      whileDown();
      return startPlatform(dataDir, env);
    },
    async close() {
      await stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Starts the reference: bare Connect server streams. */
export async function startBare() {
  const { child, addresses } = await startServer("bare");
  const transport = createGrpcJsTransport(addresses.tasks);
  return {
    tasks: createClient(TaskService, transport),
    workers: createClient(WorkerService, transport),
    close() {
      transport.close();
      return ended(child);
    },
  };
}

function startServer(folder: string, env: NodeJS.ProcessEnv = {}) {
  const child = fork(join(import.meta.dirname, "server.ts"), [folder], {
    execArgv: ["--expose-gc"],
    env: { ...process.env, ...env },
  });
  return new Promise<{ child: ChildProcess; addresses: { tasks: string; registry?: string } }>(
    (resolve, reject) => {
      child.once("message", (addresses) => resolve({ child, addresses: addresses as { tasks: string } }));
      child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    },
  );
}

function rssOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once("message", (answer) => resolve((answer as { rss: number }).rss));
    child.send({});
  });
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.disconnect();
  });
}

let requests = 0;

/** Creates a task; returns its id. */
export async function createTask({ tasks }: Platform): Promise<string> {
  const requestId = `${process.pid} ${++requests} ${Date.now()}`;
  const { task } = await tasks.createTask({
    requestId,
    draft: { agentId: AGENT, description: "count words" },
  });
  return task?.id ?? "";
}

/** Takes assignments until it is stopped, and passes the lease of each to `onLease`. */
export function takeWork(
  { workers }: Platform,
  capacity: number,
  onLease: (lease: Lease) => void,
): () => void {
  const stopping = new AbortController();
  void (async () => {
    const stream = workers.watchAssignments({ agentId: AGENT, capacity }, { signal: stopping.signal });
    for await (const { assignment } of stream) if (assignment?.lease !== undefined) onLease(assignment.lease);
  })().catch(() => {});
  return () => stopping.abort();
}
