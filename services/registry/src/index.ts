import { join } from "node:path";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { defineService, defineSettings } from "@depute/service";
import { openStore } from "@depute/store";
import type { RegistryContext } from "./context.ts";
import { agentService } from "./handlers/agent-service.ts";
import { discoveryService } from "./handlers/discovery-service.ts";
import { HASH_LENGTHS } from "./rules/version-hash.ts";
import { createSchemaChecker } from "./schema-checker.ts";
import { migrations } from "./store/migrations.ts";

/** Agents, what they can do, and whether they live. */
export const registry = defineService({
  name: "registry",
  settings: defineSettings({
    versionHashLength: {
      type: "string",
      choices: HASH_LENGTHS,
      default: "8",
      help: "digits of the version hashes that capabilities are listed with",
      group: "Registry",
    },
  }),
  descriptors: [AgentService, DiscoveryService],
  async start(deps, settings) {
    const { log, clock, bus, authority, dataDir } = deps;
    const store = await openStore({
      file: join(dataDir, "registry.sqlite"),
      migrations,
      onError: (error, what) => log.error({ err: error }, what),
    });
    const context: RegistryContext = {
      store,
      bus,
      clock,
      authority,
      schemas: createSchemaChecker(deps.connect("verifier")),
      hashLength: Number(settings.versionHashLength),
    };
    return {
      routes: (router) => {
        router.service(AgentService, agentService(context));
        router.service(DiscoveryService, discoveryService(context));
      },
      close: () => store.close(),
    };
  },
});
