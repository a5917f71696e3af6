import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { newId } from "@depute/core";
import { AllowedHosts, Outbound, type ServiceDeps, type Settings } from "@depute/service";
import { defineModule, type OpenModule, type TaskEngine } from "../core/index.ts";
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
 * Work at agents' own NEKTE endpoints: the service is one more worker, which claims the tasks of agents whose record names an
 * endpoint. Without allowed hosts no endpoint is called.
 */
export const push = defineModule({
  name: "push",
  settings: PUSH_SETTINGS,
  migrations: PUSH_MIGRATIONS,
  open: openPush,
});

function openPush(
  { log, dataDir, publicUrl, clock, timers, stopping, connect }: ServiceDeps,
  engine: TaskEngine,
  settings: Settings<typeof PUSH_SETTINGS>,
): OpenModule {
  const { tasksPushCapacity: capacity, tasksPushPerAgent: perAgent } = settings;
  const allowed = new AllowedHosts(settings.tasksOutboundHosts);
  // The endpoint already has the contexts of the work that goes on there.
  engine.allowMissingContexts(async (tx, taskId) => (await openRemote(tx, taskId)) !== undefined);
  if (allowed.isEmpty) return { close: async () => {} };
  // Streams hold their connections, so what is asked beside them has others.
  const outbound = {
    streams: new Outbound({ hosts: allowed, maxConnections: capacity + MAX_KEPT }),
    calls: new Outbound({ hosts: allowed }),
  };
  const peerAt = peersOver(outbound, readPeerCredentials(settings.tasksOutboundCredentials));
  const remotes = new Remotes(engine, clock);
  const kept = new Kept(timers);
  const cancellations = new Cancellations({ store: engine.store, peerAt, clock, timers, log });
  remotes.onOwed(() => cancellations.wake());
  remotes.onEnd((taskId) => kept.drop(taskId));
  const push = { peerAt, remotes, kept, clock, timers };
  const endpoints = new Endpoints(createClient(AgentService, connect("registry")), clock, () => publicUrl);
  const instance = instanceOf(join(dataDir, "push.instance"));
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
      kept.close();
      await cancellations.close();
      outbound.streams.close();
      outbound.calls.close();
    },
  };
}

/** The name that a process of this folder has, made when the first one begins. */
function instanceOf(file: string): string {
  if (!existsSync(file)) writeFileSync(file, newId(), { mode: 0o600 });
  return readFileSync(file, "utf8").trim();
}
