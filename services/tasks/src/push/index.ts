import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { randomUuid } from "@depute/core";
import { AllowedHosts, Outbound, readOrCreate, type ServiceDeps, type Settings } from "@depute/service";
import { defineModule, type OpenModule, type TaskEngine } from "../core/index.ts";
import { a2aPeersOver } from "./peers/a2a-peers.ts";
import { Endpoints } from "./peers/agents.ts";
import { peersOver, readPeerCredentials } from "./peers/peers.ts";
import { PUSH_SETTINGS } from "./settings.ts";
import { PUSH_MIGRATIONS } from "./store/migrations.ts";
import { openRemote } from "./store/remote-rows.ts";
import { Cancellations } from "./work/cancellations.ts";
import { Dispatcher } from "./work/dispatcher.ts";
import { Kept, MAX_KEPT } from "./work/kept.ts";
import { Remotes } from "./work/remotes.ts";

/**
 * Push: the service sends tasks to agents that serve NEKTE or A2A themselves. It acts as the worker of agents whose
 * record contains an address. If the settings allow no hosts, the service calls no address.
 */
export const push = defineModule({
  name: "push",
  settings: PUSH_SETTINGS,
  migrations: PUSH_MIGRATIONS,
  open: openPush,
});

function openPush(
  { log, dataDir, publicUrl, clock, timers, stopping, connect, isReplicated }: ServiceDeps,
  engine: TaskEngine,
  settings: Settings<typeof PUSH_SETTINGS>,
): OpenModule {
  const { tasksPushCapacity: capacity, tasksPushPerAgent: perAgent } = settings;
  const allowed = new AllowedHosts(settings.tasksOutboundHosts);
  // An endpoint that already has a task also has the task's contexts. So the queue may dispatch this task again without
  // its contexts.
  engine.allowMissingContexts(async (tx, taskId) => (await openRemote(tx, taskId)) !== undefined);
  if (allowed.isEmpty) return { close: async () => {} };
  // Streams occupy connections for a long time, so other calls have a separate connection pool.
  const outbound = {
    streams: new Outbound({ hosts: allowed, maxConnections: capacity + MAX_KEPT }),
    calls: new Outbound({ hosts: allowed }),
  };
  const credentials = readPeerCredentials(settings.tasksOutboundCredentials);
  const peerAt = peersOver(outbound, credentials);
  const a2aPeerAt = a2aPeersOver(outbound, credentials);
  const remotes = new Remotes(engine, clock);
  const keptStreams = new Kept(timers);
  const cancellations = new Cancellations({
    ...{ store: engine.store, peerAt, a2aPeerAt, clock, timers, log },
    lease: engine.lease("cancellations"),
  });
  remotes.onOwed(() => cancellations.wake());
  remotes.onEnd((taskId) => keptStreams.drop(taskId));
  const push = { peerAt, a2aPeerAt, remotes, keptStreams, clock, timers };
  const endpoints = new Endpoints(createClient(AgentService, connect("registry")), clock, () => publicUrl);
  // Replicas may share a data folder, so each replica makes a new instance name when it starts. The leases of a lost
  // replica expire.
  const instance = isReplicated ? randomUuid() : instanceOf(join(dataDir, "push.instance"));
  const dispatcher = new Dispatcher({
    engine,
    timers,
    stopping,
    endpoints,
    push,
    log,
    instance,
    capacity,
    perAgent,
  });
  return {
    async start() {
      await dispatcher.start();
      cancellations.wake();
    },
    async close() {
      await dispatcher.close();
      keptStreams.close();
      await cancellations.close();
      outbound.streams.close();
      outbound.calls.close();
    },
  };
}

/** Returns the instance name of this data folder, which survives restarts. The first process creates the name. */
function instanceOf(file: string): string {
  return readOrCreate(file, randomUuid).trim();
}
