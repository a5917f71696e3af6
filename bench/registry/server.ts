import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type Transport } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { systemClock, systemTimers } from "@depute/core";
import { registry } from "@depute/registry";
import { commonSettings, createLogger, defineService, hostServices, readSettings } from "@depute/service";
import { agentOf, capabilitiesOf } from "./agents.ts";

/**
 * A registry in a process of its own, filled with as many agents as its first argument says; in the folder that its second
 * one names, what is there is kept. Schemas are taken as they are:
 * the verifier is not what is measured. Tells its address once it is full.
 */

/** Agents that are registered at once while it is filled. */
const IN_FLIGHT = 64;

const count = Number(process.argv[2]);
const kept = process.argv[3];
const dataDir = kept ?? mkdtempSync(join(tmpdir(), "depute-bench-"));
mkdirSync(dataDir, { recursive: true });
if (kept === undefined) process.on("exit", () => rmSync(dataDir, { recursive: true, force: true }));
process.on("disconnect", () => process.exit());

const lenient = defineService({
  name: "verifier",
  settings: {},
  descriptors: [VerificationService],
  start: async () => ({
    routes: (router) => {
      router.rpc(VerificationService.method.checkSchema, () => ({ violations: [] }));
    },
    close: async () => {},
  }),
});

/** Has the address of the registry within the process. */
let direct: Transport | undefined;
const filler = defineService({
  name: "tokens",
  settings: {},
  descriptors: [],
  start: async (deps) => {
    direct = deps.connect("registry");
    return { routes: () => {}, close: async () => {} };
  },
});

const about = { name: "bench" };
const host = await hostServices({
  modules: [
    { module: registry, settings: readSettings(registry.settings, [], about), listen: true },
    { module: lenient, settings: {}, listen: false },
    { module: filler, settings: {}, listen: false },
  ],
  common: readSettings(commonSettings, ["--data-dir", dataDir, "--registry-port", "0"], about),
  bus: createBus({ onError: (error) => console.error(error) }),
  log: createLogger({ level: "error", name: "bench" }),
  clock: systemClock,
  timers: systemTimers,
});

if (direct === undefined) throw new Error("the registry is not connected");
const agents = createClient(AgentService, direct);
const isFull = await agents.heartbeatAgent({ id: agentOf(count - 1).id }).then(
  () => true,
  () => false,
);
const numbers = Array.from({ length: isFull ? 0 : count }, (_, i) => i).values();
await Promise.all(
  Array.from({ length: IN_FLIGHT }, async () => {
    for (const i of numbers) {
      const agent = agentOf(i);
      await agents.registerAgent({ requestId: `r${i}`, agent });
      const capabilities = capabilitiesOf(i);
      await agents.publishCapabilities({ requestId: `p${i}`, agentId: agent.id, capabilities });
    }
  }),
);
process.send?.({ address: new URL(host.urls.registry ?? "").host });
