import { fingerprintOf, LOCAL_PRINCIPAL, openSeed, SealedSecrets, type ServiceDeps } from "@depute/service";
import { contextRoom } from "../rules/context-room.ts";
import type { ContextMemory } from "./context-memory.ts";
import { ProcessContexts } from "./process-contexts.ts";
import { SharedContexts } from "./shared-contexts.ts";

/**
 * Opens the memory for contexts that may not be persisted: Redis for replicas that share one, otherwise this process.
 * The platform's key `contexts` seals the data in Redis.
 *
 * @param maxBytes maximum total size of the data
 * @throws SettingsError with the causes of {@link openSeed}
 */
export async function openContextMemory(
  { clock, timers, log, isReplicated, keys, sharedMemory }: ServiceDeps,
  maxBytes: number,
): Promise<ContextMemory> {
  const roomFor = (owner: string) => contextRoom(maxBytes, owner === LOCAL_PRINCIPAL);
  if (!isReplicated || sharedMemory === undefined)
    return new ProcessContexts({ clock, timers, roomFor, isShared: isReplicated });
  const danger = "its readers can open contexts that may not be persisted";
  const seed = await openSeed(keys, { name: "contexts.key", danger });
  return new SharedContexts({
    // Each platform has its own key, and so its own namespace in a Redis that several platforms use.
    memory: await sharedMemory(`contexts-${fingerprintOf(seed)}`),
    seal: new SealedSecrets(seed),
    roomFor,
    onError: (err) => log.warn({ err }, "the connection to the shared memory did not end"),
  });
}
