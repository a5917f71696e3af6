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
 * Runs a registry in a separate process. The first argument is the number of agents, the second a folder whose contents
 * are kept. Schemas are accepted without the verifier, which is not measured. The process reports its address when the
 * registry is filled.
 */

/** Number of agents that are registered at the same time while the registry is filled. */
const IN_FLIGHT = 64;

const count = Number(process.argv[2]);
const dataFolder = process.argv[3];
const dataDir = dataFolder ?? mkdtempSync(join(tmpdir(), "depute-bench-"));
mkdirSync(dataDir, { recursive: true });
if (dataFolder === undefined) process.on("exit", () => rmSync(dataDir, { recursive: true, force: true }));
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

/** The transport to the registry, without a network; undefined until the registry runs. */
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

const program = { name: "bench" };
const host = await hostServices({
  modules: [
    { module: registry, settings: readSettings(registry.settings, [], program), listen: true },
    { module: lenient, settings: {}, listen: false },
    { module: filler, settings: {}, listen: false },
  ],
  common: readSettings(commonSettings, ["--data-dir", dataDir, "--registry-port", "0"], program),
  bus: await createBus({ onError: (error) => console.error(error) }),
  log: createLogger({ level: "error", name: "bench" }),
  clock: systemClock,
  timers: systemTimers,
});

if (direct === undefined) throw new Error("the registry is not connected");
const agents = createClient(AgentService, direct);
const isFull = await agents.heartbeatAgent({ agentId: agentOf(count - 1).id }).then(
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
