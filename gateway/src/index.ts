import { createClient } from "@connectrpc/connect";
import { DelegateosService } from "@depute/contracts/depute/delegateos/v1/delegateos_service_pb";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { Nekte } from "@depute/contracts/nekte/v1/nekte_pb";
import { defineService, SERVICES } from "@depute/service";
import { a2aWire } from "../wires/a2a/routes.ts";
import { agentaWire } from "../wires/agenta/routes.ts";
import { aspRoutes } from "../wires/asp/index.ts";
import { aspUpgrades } from "../wires/asp/live.ts";
import { capWire } from "../wires/cap/routes.ts";
import { delegateosRoutes } from "../wires/delegateos/index.ts";
import { DelegateosMethods } from "../wires/delegateos/methods.ts";
import { delegateosService } from "../wires/delegateos/rpc.ts";
import { logWire } from "../wires/log/routes.ts";
import { mcpWire, readMcpConfig } from "../wires/mcp/index.ts";
import { nekteRoutes } from "../wires/nekte/index.ts";
import { NekteMethods } from "../wires/nekte/methods.ts";
import { nekteHosts, readAgentPorts } from "../wires/nekte/reach.ts";
import { NEKTE_MANNERS, nekteService } from "../wires/nekte/rpc.ts";
import { createClients } from "./clients.ts";
import { serveWire } from "./edge/serve-wire.ts";
import { forwardService } from "./forward.ts";
import type { WireDeps } from "./json-rpc-route.ts";
import { FORWARDED } from "./services.ts";
import { gatewaySettings } from "./settings.ts";

/** Every service on one port, and the JSON wires. It keeps nothing: any replica can answer anything. */
export const gateway = defineService({
  name: "gateway",
  settings: gatewaySettings,
  descriptors: [...SERVICES.flatMap((name) => FORWARDED[name]), Nekte, DelegateosService],
  forwards: FORWARDED,
  async start(deps, settings) {
    const { log, clock, timers, stopping } = deps;
    const { nekteDefaultAgent: defaultAgent, nekteInvokeTimeout: invokeTimeoutMs } = settings;
    const clients = createClients(deps.connect);
    const wire: WireDeps = {
      log,
      clock,
      timers,
      stopping,
      bodies: { maxBytes: settings.maxBodyBytes, timeoutMs: settings.bodyTimeout, timers },
      get publicUrl() {
        return deps.publicUrl;
      },
    };
    const mcp = mcpWire(readMcpConfig(settings.mcpConfig), deps.connect, clients, wire);
    const methods = new NekteMethods({ clients, defaultAgent, invokeTimeoutMs });
    const delegateos = new DelegateosMethods(clients, clock);
    const auth = settings.auth === "required" ? "bearer" : "none";
    const hosts = () => nekteHosts(settings.nekteHosts, deps.publicUrl);
    const nekte = { methods, clock, hosts };
    return {
      routes: (router) => {
        for (const name of SERVICES) {
          const transport = deps.connect(name);
          for (const service of FORWARDED[name]) {
            router.service(service, forwardService(service, transport, clock));
          }
        }
        router.service(Nekte, nekteService(nekte));
        router.service(DelegateosService, delegateosService(delegateos, clock));
      },
      http: [
        ...nekteRoutes({
          methods,
          deps: wire,
          epochMs: settings.nekteEpochMs,
          auth,
          isServing: deps.isServing,
        }),
        ...delegateosRoutes(delegateos, clients, wire),
        ...aspRoutes(clients, wire),
        ...serveWire(capWire(clients), wire),
        ...serveWire(logWire(createClient(LogService, deps.connect("verifier"))), wire),
        ...serveWire(a2aWire(clients), wire),
        ...serveWire(agentaWire(clients, wire), wire),
        ...mcp.http,
      ],
      manners: new Map([[Nekte.typeName, NEKTE_MANNERS]]),
      ports: readAgentPorts(settings.nektePorts).map(({ agentId, port }) => ({
        port,
        descriptors: [Nekte],
        routes: (router) => {
          router.service(Nekte, nekteService({ ...nekte, agentId }));
        },
      })),
      hosts: () => hosts().flatMap((name) => [name, `*.${name}`]),
      upgrades: aspUpgrades(clients, wire),
      close: () => mcp.close(),
    };
  },
});
