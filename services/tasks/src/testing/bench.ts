import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import { ArtifactService } from "@depute/contracts/depute/tasks/v1/artifact_service_pb";
import { ContextService } from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import {
  type Assignment,
  type Lease,
  WorkerService,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ManualClock, newId } from "@depute/core";
import {
  type Authority,
  type Binding,
  createDirectTransport,
  createLogger,
  createMetrics,
  DIRECT_CLIENTS,
  DomainMetrics,
  keyFiles,
  type Right,
  type ServiceDeps,
} from "@depute/service";
import { claim } from "../core/queue/claim.ts";
import { type Core, openCore } from "../core/runtime.ts";
import { MODULES } from "../modules.ts";
import { reviews } from "../reviews/index.ts";
import { Fakes } from "./fakes.ts";
import { MODEL_TREE } from "./model.ts";
import { T0 } from "./tasks.ts";

/**
 * A fake authority. The header `as` is the caller's principal (`local` if absent), and `as-organization` its
 * organization. The fake records the permissions that handlers require.
 */
function authorityNoting(rights: AskedRight[]): Authority {
  return {
    identify: async ({ requestHeader }) => identityOf(requestHeader),
    async authorise({ requestHeader }, right, binding) {
      rights.push({ ...right, ...(binding && { binding }) });
      return { ...identityOf(requestHeader), blocks: [] };
    },
  };
}

/** A permission that a handler required, with the binding that the token had to have. */
export type AskedRight = Right & { binding?: Binding };

function identityOf(header: Headers) {
  const principal = header.get("as") ?? "local";
  return { principal, local: principal === "local", organization: header.get("as-organization") ?? "" };
}

/** One day in milliseconds. The bench keeps ended tasks for a day, and then tombstones for a day. */
export const DAY_MS = 86_400_000;

/** The task engine without sockets, with its own database file and a fake clock. */
export interface Bench {
  readonly clock: ManualClock;
  readonly fakes: Fakes;
  /** The permissions that handlers have required, in order. */
  readonly rights: readonly AskedRight[];
  readonly runtime: Core;
  readonly deps: ServiceDeps;
  readonly tasks: Client<typeof TaskService>;
  readonly workers: Client<typeof WorkerService>;
  readonly contexts: Client<typeof ContextService>;
  readonly artifacts: Client<typeof ArtifactService>;
  readonly dataDir: string;
  /** Advances the clock, and waits for the background work that becomes due. */
  pass(ms: number): Promise<void>;
  /** Closes the engine and opens it again on the same file. */
  reopen(whileClosed?: () => void): Promise<void>;
  close(): Promise<void>;
}

/** @param boundsOperators principals that may widen agents' limits; if empty, each agent may widen its own limits */
export async function openBench(
  fakes = new Fakes(),
  boundsOperators: readonly string[] = [],
): Promise<Bench> {
  const clock = new ManualClock(T0);
  const rights: AskedRight[] = [];
  const dataDir = mkdtempSync(join(tmpdir(), "depute-tasks-"));
  const log = createLogger({ level: "silent", name: "test" });

  const open = async () => {
    const bus = await createBus({
      onError: (error) => {
        throw error;
      },
    });
    const stopping = new AbortController();
    const metrics = createMetrics();
    const deps: ServiceDeps = {
      log,
      clock,
      timers: clock,
      random: () => 0.5,
      bus,
      auth: "open",
      connect: (name) => createDirectTransport({ clock, timers: clock, routes: fakes.routes(name) }),
      authority: authorityNoting(rights),
      hasCredential: () => false,
      principalOf: () => "local",
      loginOf: async () => "local",
      issuers: () => [],
      subjectOf: () => Promise.reject(new Error("no issuer is configured")),
      keys: keyFiles(dataDir),
      dataDir,
      audit: undefined,
      metrics,
      domainMetrics: new DomainMetrics(metrics, clock),
      isServing: () => true,
      isReplicated: false,
      replicas: { list: async () => [] },
      witnessFor: () => undefined,
      storeAt: (name) => ({ file: join(dataDir, `${name}.sqlite`) }),
      publicUrl: "http://127.0.0.1",
      addresses: DIRECT_CLIENTS,
      quotas: fakes.quotas,
      turns: { enter: () => ({ end() {} }) },
      stopping: stopping.signal,
    };
    const runtime = await openCore(
      deps,
      {
        tasksPollInterval: 1000,
        metricsAgentClasses: [],
        tasksStreamHeartbeat: 30_000,
        tasksMaxDepth: MODEL_TREE.maxDepth,
        tasksMaxChildren: MODEL_TREE.maxChildren,
        tasksMaxOpenInTree: MODEL_TREE.maxOpen,
        tasksContextMemory: 1000,
        tasksRetention: DAY_MS,
        tasksTombstoneRetention: DAY_MS,
        boundsOperators,
      },
      MODULES.map(({ name, migrations }) => ({ name, migrations })),
    );
    const reviewing = await reviews.open(deps, runtime.engine, {
      tasksReviewTimeout: DAY_MS / 2,
      tasksReviewEscalation: [],
      orchestratorPrincipals: ["the-orchestrator"],
    });
    await runtime.start();
    await reviewing.start?.();
    const transport = createDirectTransport({ clock, timers: clock, routes: runtime.routes });
    await runtime.timekeeper.idle();
    return {
      runtime,
      deps,
      tasks: createClient(TaskService, transport),
      workers: createClient(WorkerService, transport),
      contexts: createClient(ContextService, transport),
      artifacts: createClient(ArtifactService, transport),
      async close() {
        stopping.abort();
        await reviewing.close();
        await runtime.close();
        await bus.close();
      },
    };
  };
  let opened = await open();

  return {
    clock,
    dataDir,
    fakes,
    rights,
    get runtime() {
      return opened.runtime;
    },
    get deps() {
      return opened.deps;
    },
    get tasks() {
      return opened.tasks;
    },
    get artifacts() {
      return opened.artifacts;
    },
    get contexts() {
      return opened.contexts;
    },
    get workers() {
      return opened.workers;
    },
    async pass(ms) {
      clock.advance(ms);
      await opened.runtime.timekeeper.idle();
      // The timekeeper may have read the store before the clock's last step, so it runs once more.
      clock.advance(0);
      await opened.runtime.timekeeper.idle();
    },
    async reopen(whileClosed) {
      await opened.close();
      whileClosed?.();
      opened = await open();
    },
    async close() {
      await opened.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Returns the call options of a caller with this principal. */
export function asCaller(principal: string) {
  return { headers: { as: principal } };
}

/** Dispatches the agent's first pending task to a worker. Throws if no task is pending. */
export async function take({ runtime }: Bench, agentId: string): Promise<Assignment & { lease: Lease }> {
  const stream = { agentId, worker: "w", capacity: 1, capabilityIds: [], holder: newId() };
  const [assignment] = await claim(runtime.context.engine, stream, 1, runtime.context.contextMemory);
  if (assignment?.lease === undefined) throw new Error("nothing to do");
  return { ...assignment, lease: assignment.lease };
}

/** Dispatches the agent's first pending task and starts it. Returns the lease. */
export async function begin(bench: Bench, agentId: string, options = {}): Promise<Lease> {
  const { lease } = await take(bench, agentId);
  await bench.workers.startAssignment({ lease }, options);
  return lease;
}
