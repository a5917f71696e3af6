import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "@depute/core";
import { AllowedHosts, Outbound, type ServiceDeps } from "@depute/service";
import type { TasksContext } from "../core/handlers/context.ts";
import { Endpoints } from "./peers/agents.ts";
import { peersOver, readPeerCredentials } from "./peers/peers.ts";
import { Dispatcher } from "./work/dispatcher.ts";
import { Farewells } from "./work/farewells.ts";
import { Kept, MAX_KEPT } from "./work/kept.ts";
import { Remotes } from "./work/remotes.ts";

/** What pushing work to endpoints is set to. */
export interface PushSettings {
  /** The hosts that may be called; none turns all of this off. */
  readonly hosts: readonly string[];
  /** The file of credentials; empty for none. */
  readonly credentialsFile: string;
  /** Tasks at endpoints at once. */
  readonly capacity: number;
  /** Of these, for one agent. */
  readonly perAgent: number;
}

/** Work at agents' own endpoints. */
export interface PushDelegates {
  /** Ends background work; to be called while the store is still open. */
  close(): Promise<void>;
}

/**
 * Agents that answer NEKTE themselves are called where they do: their work is taken for them as by a worker, handed over
 * there, and what they tell of it is relayed.
 *
 * @throws Error for hosts and credentials that cannot be read
 */
export async function openPushDelegates(
  deps: Pick<ServiceDeps, "log" | "dataDir" | "publicUrl">,
  tasks: TasksContext,
  { hosts, credentialsFile, capacity, perAgent }: PushSettings,
): Promise<PushDelegates> {
  const allowed = new AllowedHosts(hosts);
  if (allowed.isEmpty) return { close: async () => {} };
  const { log } = deps;
  const { engine, clock, timers, dependencies } = tasks;
  // Streams hold their connections, so what is asked beside them has others.
  const outbound = {
    streams: new Outbound({ hosts: allowed, maxConnections: capacity + MAX_KEPT }),
    calls: new Outbound({ hosts: allowed }),
  };
  const peerAt = peersOver(outbound, readPeerCredentials(credentialsFile));
  const remotes = new Remotes(engine);
  const kept = new Kept(timers);
  const farewells = new Farewells({ store: engine.store, peerAt, clock, timers, log });
  remotes.onOwed(() => farewells.wake());
  remotes.onEnd((taskId) => kept.drop(taskId));
  const push = { peerAt, remotes, kept, clock, timers };
  const endpoints = new Endpoints(dependencies.agents, clock, () => deps.publicUrl);
  const instance = instanceOf(join(deps.dataDir, "push.instance"));
  const dispatcher = new Dispatcher({ tasks, endpoints, push, log, instance, capacity, perAgent });
  await dispatcher.start();
  farewells.wake();
  return {
    async close() {
      await dispatcher.close();
      kept.close();
      await farewells.close();
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
