import type { ServiceImpl } from "@connectrpc/connect";
import type { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import type { RegistryContext } from "../context.ts";
import { discoverCapabilities } from "./discover-capabilities.ts";
import { resolveCapability } from "./resolve-capability.ts";

export function discoveryService(registry: RegistryContext): ServiceImpl<typeof DiscoveryService> {
  return {
    discoverCapabilities: (request, context) => discoverCapabilities(registry, request, context),
    resolveCapability: (request, context) => resolveCapability(registry, request, context),
  };
}
