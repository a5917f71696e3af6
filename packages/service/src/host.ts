import { mkdirSync } from "node:fs";
import type { ConnectRouter, Interceptor, Transport } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import { Health } from "@depute/contracts/grpc/health/v1/health_pb";
import { type Clock, type IdRule, setIdRule, systemClock, systemTimers, type Timers } from "@depute/core";
import type { StoreLostError } from "@depute/store";
import { createAuthority } from "./authority.ts";
import { type CommonSettings, portOf, urlOf } from "./common-settings.ts";
import { readCredentials } from "./credentials.ts";
import { createDirectTransport } from "./direct-transport.ts";
import { assertDoorSettings, createDoor } from "./door.ts";
import { createFastPath } from "./fast/fast-path.ts";
import { followReadiness, forwardedServices } from "./follow-readiness.ts";
import { createHealth, type HealthState, healthService } from "./health.ts";
import { observeRoutes } from "./http-observe.ts";
import { clientInterceptors } from "./interceptors/client.ts";
import { shuttingDown } from "./interceptors/drain.ts";
import { serverInterceptors } from "./interceptors/server.ts";
import { createLateTransport } from "./late-transport.ts";
import type { Logger } from "./log.ts";
import { assertBindable } from "./loopback.ts";
import { createMetrics, type Registry } from "./metrics.ts";
import type { OwnPort, ServiceDeps, ServiceInstance, ServiceModule } from "./module.ts";
import { type ModuleName, SERVICES, type ServiceName } from "./names.ts";
import { operationsRoutes } from "./operations.ts";
import { PeerWatch } from "./peer-watch.ts";
import { Readiness } from "./readiness.ts";
import { registerReflection } from "./reflection.ts";
import { createRpcHandler } from "./rpc-handler.ts";
import { type Server, type ServerOptions, startServer } from "./server.ts";
import { type Settings, SettingsError, type SettingsTable } from "./settings.ts";
import { explainStoreKeys, storeAt } from "./store-place.ts";
import { startTelemetry, type Telemetry } from "./telemetry.ts";
import { createServiceTransport, type ServiceTransport } from "./transport.ts";

/** One service to run in this process. */
export interface HostedModule<Table extends SettingsTable = SettingsTable> {
  readonly module: ServiceModule<Table>;
  readonly settings: Settings<Table>;
  /** Whether it has a port of its own; without one, only the process's other services reach it. */
  readonly listen: boolean;
}

export interface HostOptions {
  modules: readonly HostedModule[];
  common: CommonSettings;
  /** Not closed by the host. */
  bus: Bus;
  log: Logger;
  metrics?: Registry;
  clock?: Clock;
  timers?: Timers;
  /** The process's name in traces. */
  name?: string;
  /** Called once when a store can never be used again by this process, which then has to end. */
  onLost?: (error: StoreLostError) => void;
}

/** Services that run in this process. */
export interface Host {
  /** Where each one that listens is reached, e.g. `http://127.0.0.1:8080`. */
  readonly urls: Readonly<Partial<Record<ModuleName, string>>>;
  readonly metrics: Registry;
  /** A service of this process or of another, as the services see it. */
  connect(name: ServiceName): Transport;
  /** Drains and closes everything; the same promise for every call. */
  stop(): Promise<void>;
}

interface Running {
  module: ServiceModule;
  instance: ServiceInstance;
  interceptors: Interceptor[];
}

/**
 * Starts services with transports to one another and opens their ports.
 *
 * What runs here is called directly, what does not at its configured address. Nothing waits for a service to be up.
 *
 * @throws SettingsError when a port would be open to a network without authentication, or processes that have to trust
 * one another share no secret, or an allowed host or origin is malformed; whatever a service's start or
 * listening throws, after what had been started was closed again
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: starts and ends all that a process has, in an order that is its contract
export async function hostServices(options: HostOptions): Promise<Host> {
  const { modules, common, bus, log, clock = systemClock, timers = systemTimers } = options;
  if (modules.some(({ listen }) => listen)) assertBindable(common.host, common.auth);
  assertTrust(modules, common);
  assertDoorSettings(common.allowedHosts, common.allowedOrigins);
  setIdRule(common.ids as IdRule);
  const credentials = readCredentials(common.credentialsFile);
  const metrics = options.metrics ?? createMetrics();
  const stopping = new AbortController();
  const tracing = common.otlpEndpoint !== "";
  const running: Running[] = [];
  const servers: { server: Server; health: HealthState; module: ServiceModule }[] = [];
  const ownPorts: Server[] = [];
  const readiness = new Readiness({ log, onLost: (error) => options.onLost?.(error) });
  const peers: PeerWatch[] = [];
  const urls: Partial<Record<ModuleName, string>> = {};
  let telemetry: Telemetry | undefined;

  const hosted = new Set<ModuleName>(modules.map(({ module }) => module.name));
  const direct = new Map<ModuleName, Transport>();
  const remote = new Map<ServiceName, ServiceTransport>();
  const { internalSecret } = common;
  const connect = (name: ServiceName): Transport => {
    if (hosted.has(name)) return createLateTransport(name, () => direct.get(name));
    let transport = remote.get(name);
    if (transport === undefined) {
      transport = createServiceTransport(urlOf(common, name), { service: name, internalSecret, tracing });
      remote.set(name, transport);
    }
    return transport;
  };
  const publicUrlOf = (name: ModuleName): string =>
    common.publicUrl || urls[name] || urls.gateway || `http://${common.host}:${portOf(common, name)}`;

  const close = async (drainMs: number) => {
    for (const { health } of servers) health.set(false);
    stopping.abort(shuttingDown());
    await Promise.all(peers.map((peer) => peer.close()));
    await Promise.all(
      [...servers.map(({ server }) => server), ...ownPorts].map((each) => each.close(drainMs)),
    );
    const closed = await Promise.allSettled(running.toReversed().map(({ instance }) => instance.close()));
    for (const result of closed)
      if (result.status === "rejected") log.error({ err: result.reason }, "closing failed");
    for (const transport of remote.values()) transport.close();
    await telemetry
      ?.shutdown()
      .catch((err: unknown) => log.warn({ err }, "the last traces could not be sent"));
  };

  try {
    mkdirSync(common.dataDir, { recursive: true, mode: 0o700 });
    if (tracing)
      telemetry = startTelemetry({ serviceName: options.name ?? "depute", endpoint: common.otlpEndpoint });
    for (const { module, settings } of modules) {
      const moduleLog = log.child({ service: module.name });
      const deps: ServiceDeps = {
        log: moduleLog,
        clock,
        timers,
        bus,
        connect,
        authority: createAuthority(connect("tokens"), clock),
        auth: common.auth,
        hasCredential: (principal) => credentials.names(principal),
        dataDir: common.dataDir,
        storeAt: (name, fingerprints) => ({
          ...storeAt(common, name),
          ...(fingerprints && { keys: { fingerprints, replaced: common.replaceKeys } }),
          onState: (state) => readiness.setStore(module.name, name, state),
        }),
        metrics,
        isServing: () => servers.find((each) => each.module === module)?.health.serving ?? false,
        get publicUrl() {
          return publicUrlOf(module.name);
        },
        stopping: stopping.signal,
      };
      const instance = await module
        .start(deps, settings)
        .catch((error) => Promise.reject(explainStoreKeys(error, common)));
      const interceptors = serverInterceptors({
        ...common,
        log: moduleLog,
        metrics,
        clock,
        timers,
        credentials,
        publicUrl: () => publicUrlOf(module.name),
        tracing,
        stopping: stopping.signal,
        ...(instance.manners && { manners: instance.manners }),
      });
      running.push({ module, instance, interceptors });
      direct.set(
        module.name,
        createDirectTransport({
          routes: instance.routes,
          interceptors,
          clientInterceptors: clientInterceptors({ service: module.name, internalSecret: "", tracing }),
        }),
      );
    }
    for (const { module, instance, interceptors } of running) {
      if (!modules.some((each) => each.module === module && each.listen)) continue;
      const health = createHealth(module.descriptors.map((service) => service.typeName));
      const { maxRequestBytes, bodyTimeout: bodyTimeoutMs, maxConnections, maxConcurrentStreams } = common;
      const listen = (port: number, served: Pick<OwnPort, "descriptors" | "routes">, more: More) => {
        const routes = (router: ConnectRouter) => {
          served.routes(router);
          router.service(Health, healthService(health));
          registerReflection(router, [...served.descriptors, Health]);
        };
        const { manners } = instance;
        const bodies = { maxRequestBytes, bodyTimeoutMs, timers };
        const rpc = { routes, interceptors, ...bodies, log, ...(manners && { manners }) };
        return startServer({
          host: common.host,
          port,
          rpc: createRpcHandler(rpc),
          ...(common.fastPath ? { fast: createFastPath(rpc) } : {}),
          door: createDoor({
            publicUrl: () => publicUrlOf(module.name),
            allowedHosts: () => [...common.allowedHosts, ...(instance.hosts?.() ?? [])],
            allowedOrigins: common.allowedOrigins,
            isOpen: common.auth === "open",
          }),
          ...more,
          ...(manners && { manners }),
          maxConnections,
          maxConcurrentStreams,
          log,
          timers,
        });
      };
      const operations = operationsRoutes(health, metrics);
      const { descriptors } = module;
      const server = await listen(
        portOf(common, module.name),
        { descriptors, routes: instance.routes },
        {
          routes: [...observeRoutes(instance.http ?? [], { metrics, tracing }), ...operations],
          ...(instance.upgrades === undefined ? {} : { upgrades: instance.upgrades }),
        },
      );
      servers.push({ server, health, module });
      urls[module.name] = server.url;
      for (const own of instance.ports ?? []) {
        ownPorts.push(await listen(own.port, own, { routes: operations }));
      }
    }
    for (const name of new Set(modules.flatMap(({ module }) => forwardedServices(module)))) {
      if (hosted.has(name)) continue;
      const onServing = (serves: boolean) => readiness.setPeer(name, serves);
      const peer = new PeerWatch({ transport: connect(name), timers, onServing });
      peers.push(peer);
      peer.start();
    }
    for (const { health, module } of servers) followReadiness(health, module, readiness, stopping.signal);
  } catch (error) {
    await close(0);
    throw error;
  }

  let stopped: Promise<void> | undefined;
  return {
    urls,
    metrics,
    connect,
    stop() {
      stopped ??= close(common.drainTimeout);
      return stopped;
    },
  };
}

/** What a server has beside its RPCs. */
type More = Pick<ServerOptions, "routes" | "upgrades">;

/** Services call one another as themselves: across processes that has to be proved where callers have to prove theirs. */
function assertTrust(modules: readonly HostedModule[], { auth, internalSecret }: CommonSettings): void {
  const apart = SERVICES.some((name) => !modules.some(({ module }) => module.name === name));
  if (auth === "open" || !apart || internalSecret !== "") return;
  throw new SettingsError(
    "DEPUTE_AUTH is required and the services run in several processes: set DEPUTE_INTERNAL_SECRET, the same for all",
  );
}

/** Whether a name is one of the services that others call. */
export function isServiceName(name: string): name is ServiceName {
  return (SERVICES as readonly string[]).includes(name);
}
