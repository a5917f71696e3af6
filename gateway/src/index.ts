import { pathToFileURL } from "node:url";
import { createClient } from "@connectrpc/connect";
import { DelegateosService } from "@depute/contracts/depute/gateway/v1/delegateos_service_pb";
import { LogService } from "@depute/contracts/depute/verifier/v1/log_service_pb";
import { A2AService } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { Nekte } from "@depute/contracts/nekte/v1/nekte_pb";
import { defineService, HealthParts, openSeed, SERVICES, SealedSecrets } from "@depute/service";
import { createClients } from "../edge/clients.ts";
import type { Wire } from "../edge/route.ts";
import { serveWire } from "../edge/serve-wire.ts";
import type { WireDeps } from "../edge/wire-deps.ts";
import { errorNote } from "../wires/a2a/errors.ts";
import { a2aHttpWire } from "../wires/a2a/http.ts";
import { A2aMethods, SEND_TIMEOUT_MS } from "../wires/a2a/methods.ts";
import { a2aWire, cardsWire } from "../wires/a2a/routes.ts";
import { a2aService } from "../wires/a2a/rpc.ts";
import { agentaWire } from "../wires/agenta/routes.ts";
import { aspUpgrades } from "../wires/asp/live.ts";
import { aspWire } from "../wires/asp/routes.ts";
import { capWire } from "../wires/cap/routes.ts";
import { consoleWire } from "../wires/console/routes.ts";
import { contractsWire } from "../wires/contracts/routes.ts";
import { DelegateosMethods } from "../wires/delegateos/methods.ts";
import { delegateosWire } from "../wires/delegateos/routes.ts";
import { delegateosService } from "../wires/delegateos/rpc.ts";
import { logWire } from "../wires/log/routes.ts";
import { mcpWire } from "../wires/mcp/routes.ts";
import { NekteMethods } from "../wires/nekte/methods.ts";
import { nekteHosts, readAgentPorts } from "../wires/nekte/reach.ts";
import { nekteWire } from "../wires/nekte/routes.ts";
import { NEKTE_MANNERS, nekteService } from "../wires/nekte/rpc.ts";
import { oauthWire } from "../wires/oauth/routes.ts";
import { forwardService } from "./forward.ts";
import { FORWARDED } from "./services.ts";
import { gatewaySettings } from "./settings.ts";

/**
 * All RPC services at the gateway's port: the services that it forwards, and the services that it implements itself.
 */
const SERVED = [...SERVICES.flatMap((name) => FORWARDED[name]), Nekte, A2AService, DelegateosService];

/** The folder with the bundle of contracts, into which `npm run bundle` writes. */
const BUNDLE = new URL("../../dist/", import.meta.url);

/**
 * The file of the key with which the gateway seals the ids of MCP servers' tasks. `danger` states the risk if others
 * read the file.
 */
const TASK_KEY = { name: "mcp-tasks.key", danger: "its readers can forge ids of MCP tasks" };

/** The folder into which `npm run build:console` writes the console. */
const CONSOLE = new URL("../console/", import.meta.url);

/**
 * The gateway serves every service and the JSON wires on one port. Its stored state is the key of MCP task ids, which
 * replicas share, and audit records that are not delivered yet. So any replica can answer any request, except one
 * that continues an MCP session or an open MCP call.
 */
export const gateway = defineService({
  name: "gateway",
  isReplicable: true,
  audit: { isForwarding: true },
  settings: gatewaySettings,
  descriptors: SERVED,
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
      addresses: deps.addresses,
      turns: deps.turns,
      loginOf: (headers, certificate) => deps.loginOf(headers, certificate),
      issuers: () => deps.issuers(),
      principalOf: (headers, certificate) => deps.principalOf(headers, certificate),
      bodies: { maxBytes: settings.maxBodyBytes, timeoutMs: settings.bodyTimeout, timers },
      get publicUrl() {
        return deps.publicUrl;
      },
    };
    const parts = new HealthParts();
    // Without MCP servers, the gateway seals nothing and creates no key in the data folder.
    const seal =
      settings.mcpConfig === ""
        ? SealedSecrets.ofProcess()
        : new SealedSecrets(await openSeed(deps.keys, TASK_KEY));
    const { connect, metrics, audit } = deps;
    const { mcpConfig: configPath } = settings;
    const mcp = await mcpWire({ configPath, connect, clients, deps: wire, metrics, parts, audit, seal });
    const methods = new NekteMethods({ clients, defaultAgent, invokeTimeoutMs });
    const delegateos = new DelegateosMethods(clients, clock);
    const a2a = new A2aMethods({ clients, needsCredentials: settings.auth === "required" });
    const auth = settings.auth === "required" ? "bearer" : "none";
    const hosts = () => nekteHosts(settings.nekteHosts, deps.publicUrl);
    const nekte = { methods, clock, hosts };
    const { nekteEpochMs: epochMs } = settings;
    const wires: readonly Wire[] = [
      a2aWire(a2a),
      a2aHttpWire(a2a),
      agentaWire(clients, wire),
      aspWire(clients),
      capWire(clients),
      cardsWire(clients),
      consoleWire(CONSOLE),
      contractsWire({
        services: SERVED,
        folder: settings.protosDir === "" ? BUNDLE : pathToFileURL(`${settings.protosDir}/`),
        publicUrl: () => deps.publicUrl,
      }),
      delegateosWire(delegateos, clients),
      logWire(createClient(LogService, deps.connect("verifier"))),
      mcp,
      oauthWire(clients, wire),
      nekteWire({ methods, deps: wire, epochMs, auth, isServing: deps.isServing }),
    ];
    return {
      routes: (router) => {
        for (const name of SERVICES) {
          const transport = deps.connect(name);
          for (const service of FORWARDED[name]) {
            router.service(service, forwardService(service, transport, clock));
          }
        }
        router.service(Nekte, nekteService(nekte));
        router.service(A2AService, a2aService(a2a, clock));
        router.service(DelegateosService, delegateosService(delegateos, clock));
      },
      http: wires.flatMap((each) => serveWire(each, wire)),
      manners: new Map([
        [Nekte.typeName, NEKTE_MANNERS],
        [A2AService.typeName, { errorNote, timeoutsMs: { SendMessage: SEND_TIMEOUT_MS } }],
      ]),
      ports: readAgentPorts(settings.nektePorts).map(({ agentId, port }) => ({
        port,
        descriptors: [Nekte],
        routes: (router) => {
          router.service(Nekte, nekteService({ ...nekte, agentId }));
        },
      })),
      hosts: () => hosts().flatMap((name) => [name, `*.${name}`]),
      upgrades: aspUpgrades(clients, wire),
      parts,
      close: () => mcp.close(),
    };
  },
});
