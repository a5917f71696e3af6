import { mkdirSync } from "node:fs";
import type { ConnectRouter, Interceptor, Transport } from "@connectrpc/connect";
import { Health } from "@depute/contracts/grpc/health/v1/health_pb";
import { type IdRule, setIdRule, systemClock, systemRandom, systemTimers } from "@depute/core";
import type { AuditTrail } from "./audit/audit-trail.ts";
import { auditOf, openTrailOf } from "./audit/open-trail.ts";
import { createAuthority } from "./authority.ts";
import { ClientAddresses } from "./client-address.ts";
import { addressOf, placeOf, sharedPlaceOf, urlsOf } from "./common-settings.ts";
import { createDirectTransport, createLateTransport } from "./direct-transport.ts";
import { createDoor } from "./door.ts";
import { createFastPath } from "./fast/fast-path.ts";
import { followReadiness, forwardedServices } from "./follow-readiness.ts";
import type { ForwardedHeader } from "./forwarded.ts";
import { createHealth, type HealthState, healthService } from "./health.ts";
import type { Host, HostOptions } from "./host-options.ts";
import { assertDoor, assertReplicable, assertTrust } from "./host-rules.ts";
import { loginOf, presentedPrincipal } from "./http-login.ts";
import { observeRoutes } from "./http-routes.ts";
import { clientInterceptors } from "./interceptors/client.ts";
import { lineOfCurrentCall } from "./interceptors/current-call.ts";
import { serverInterceptors, shuttingDown } from "./interceptors/server.ts";
import { NO_INTERNAL_SECRETS } from "./internal-secrets.ts";
import { createMetrics } from "./metrics.ts";
import { metricsOnServicePorts, startMetrics } from "./metrics-port.ts";
import type { OwnPort, ServiceDeps, ServiceInstance, ServiceModule } from "./module.ts";
import type { ModuleName, ServiceName } from "./names.ts";
import { operationsRoutes } from "./operations.ts";
import { PeerWatch } from "./peer-watch.ts";
import { platformKeys } from "./platform-keys.ts";
import { ProcessMetrics } from "./process-metrics.ts";
import { FairTurns } from "./quotas/fair-turns.ts";
import { countedQuotas } from "./quotas/quota-metrics.ts";
import { quotaLimitsOf } from "./quotas/quota-settings.ts";
import type { Quotas } from "./quotas/quotas.ts";
import { Readiness } from "./readiness.ts";
import { registerReflection } from "./reflection.ts";
import { ReplicaTable } from "./replica-table.ts";
import { rolesOptions } from "./roles/module-roles.ts";
import { createRpcHandler } from "./rpc-handler.ts";
import { type Server, type ServerOptions, startServer } from "./server.ts";
import { SettingsError } from "./settings.ts";
import { explainStore, storeAt } from "./store-place.ts";
import type { Telemetry } from "./telemetry.ts";
import type { Place } from "./tls/listener.ts";
import { publicUrlWarning } from "./tls/public-url.ts";
import { tracedAs, traceTo } from "./trace-to.ts";
import { createReplicasTransport, type ServiceTransport, transportsTo } from "./transport.ts";
import { openWatched } from "./watched-files.ts";
import { witnessPlace } from "./witness/place.ts";

interface Running {
  module: ServiceModule;
  instance: ServiceInstance;
  interceptors: Interceptor[];
}

/**
 * Starts services with transports to one another and opens their ports. A service of this process is called directly,
 * and any other service at its configured address. No service waits for another service when it starts.
 *
 * @throws SettingsError when a port would be open to a network without authentication, when processes that must trust
 * one another share no secret, when a service cannot have replicas, or when an allowed host, an allowed origin or a
 * trusted proxy is malformed; the errors of {@link openWatched}, ReplicaTable.open and openTrailOf; the errors of a
 * service's start or of listening, after the started services are closed
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: starts and ends all that a process has, in an order that is its contract
export async function hostServices(options: HostOptions): Promise<Host> {
  const {
    modules,
    common,
    bus,
    log,
    clock = systemClock,
    timers = systemTimers,
    random = systemRandom,
  } = options;
  assertDoor(
    common,
    modules.some(({ listen }) => listen),
  );
  assertTrust(modules, common);
  assertReplicable(modules, common);
  setIdRule(common.ids as IdRule);
  const addresses = new ClientAddresses(common.trustedProxies, common.forwardedHeader as ForwardedHeader);
  const metrics = options.metrics ?? createMetrics();
  const measures = new ProcessMetrics(metrics, clock);
  const stopping = new AbortController();
  const turns = new FairTurns({ clock, timers });
  const quotas = countedQuotas(quotaLimitsOf(common), clock, measures.domain);
  const tracing = common.otlpEndpoint !== "";
  const running: Running[] = [];
  const trails: AuditTrail[] = [];
  const servers: { server: Server; health: HealthState; module: ServiceModule }[] = [];
  const ownPorts: Server[] = [];
  const readiness = new Readiness({ log, onLost: (error) => options.onLost?.(error) });
  const peers: PeerWatch[] = [];
  const urls: Partial<Record<ModuleName, string>> = {};
  let telemetry: Telemetry | undefined;
  let replicas: ReplicaTable | undefined;

  const hosted = new Set<ModuleName>(modules.map(({ module }) => module.name));
  const direct = new Map<ModuleName, Transport>();
  const remote = new Map<ServiceName, ServiceTransport>();
  /** The transports to single replicas of other services, for the watch of their health. */
  const watched: ServiceTransport[] = [];
  const { certificates, credentials, identities, internalSecrets } = openWatched(common, {
    clock,
    timers,
    log,
  });
  const secureContext = () => certificates.caller;
  const callOf = (service: ServiceName) => ({ service, internalSecrets, tracing, secureContext });
  const connect = (name: ServiceName): Transport => {
    if (hosted.has(name)) return createLateTransport<ModuleName>(name, direct);
    let transport = remote.get(name);
    if (transport === undefined) {
      transport = createReplicasTransport(urlsOf(common, name), { ...callOf(name), timers, random });
      remote.set(name, transport);
    }
    return transport;
  };
  const publicUrlOf = (name: ModuleName): string =>
    common.publicUrl || httpUrl(urls[name]) || httpUrl(urls.gateway) || addressOf(common, name);
  const reaches = new Map<ModuleName, { publicUrl: string }>();
  const listens = (name: ModuleName, url: string): void => {
    urls[name] = url;
    for (const [each, reach] of reaches) reach.publicUrl = publicUrlOf(each);
  };

  const close = async (drainMs: number) => {
    for (const { health } of servers) health.set(false);
    stopping.abort(shuttingDown());
    await Promise.all([...peers.map((peer) => peer.close()), replicas?.close()]);
    await Promise.all(
      [...servers.map(({ server }) => server), ...ownPorts].map((each) => each.close(drainMs)),
    );
    // When the trails are closed, the decisions of the last calls are durable. The next start delivers these decisions
    // to the audit log.
    await Promise.allSettled(trails.map((trail) => trail.close()));
    // A service that started later may still call an earlier one while it closes, so they close one after the other.
    for (const { instance } of running.toReversed()) {
      await instance.close().catch((err: unknown) => log.error({ err }, "closing failed"));
    }
    for (const transport of [...remote.values(), ...watched]) transport.close();
    certificates.close();
    identities.close();
    credentials.close();
    internalSecrets.close();
    await telemetry
      ?.shutdown()
      .catch((err: unknown) => log.warn({ err }, "the last traces could not be sent"));
  };

  try {
    makeFolder(common.dataDir);
    const { version = "" } = options;
    telemetry = await traceTo(common.otlpEndpoint, { name: options.name, version });
    replicas = await ReplicaTable.open(common, { version, clock, timers, log });
    const table = replicas;
    measures.start(version, table);
    for (const { module, settings } of modules) {
      const moduleLog = log.child({ service: module.name });
      const trail = await openTrailOf(module, common, trails, {
        ...{ source: module.name, tokens: connect("tokens"), clock, timers, log: moduleLog },
        ...(common.replicated && { bus }),
        onState: (state) => readiness.setStore(module.name, "audit", state),
      });
      const deps: ServiceDeps & { publicUrl: string } = {
        log: moduleLog,
        clock,
        timers,
        random,
        bus,
        connect,
        authority: createAuthority(connect("tokens"), clock),
        auth: common.auth,
        hasCredential: (principal) => credentials.names(principal) || identities.names(principal),
        loginOf: (headers, certificate) =>
          loginOf({ mode: "required", credentials, identities }, headers, certificate),
        subjectOf: (subject) => identities.subjectOf(subject),
        issuers: () => identities.issuers,
        principalOf: (headers, certificate) =>
          presentedPrincipal({ mode: common.auth, credentials, identities }, headers, certificate),
        keys: platformKeys(common, { clock, timers, log: moduleLog }),
        dataDir: common.dataDir,
        storeAt: (name, fingerprints) => ({
          ...measures.measured(name, storeAt(common, name)),
          callerOf: lineOfCurrentCall,
          isShared: common.replicated,
          timers,
          clock,
          ...(fingerprints && { keys: { fingerprints, replaced: common.replaceKeys } }),
          onState: (state) => readiness.setStore(module.name, name, state),
        }),
        isReplicated: common.replicated,
        sharedMemory: options.sharedMemory,
        replicas: table,
        audit: trail,
        witnessFor: (name, witnessed) => witnessPlace(common, name, witnessed, timers),
        metrics,
        domainMetrics: measures.domain,
        isServing: () => servers.find((each) => each.module === module)?.health.serving ?? false,
        publicUrl: publicUrlOf(module.name),
        addresses,
        quotas,
        turns,
        stopping: stopping.signal,
      };
      reaches.set(module.name, deps);
      const instance = await module
        .start(deps, settings)
        .catch((error) => Promise.reject(explainStore(error, module.name, common)));
      const interceptors = serverInterceptors({
        ...common,
        log: moduleLog,
        metrics,
        clock,
        timers,
        credentials,
        identities,
        internalSecrets,
        reach: deps,
        turns,
        ...countedBy(module, quotas),
        tracing: tracedAs(tracing, module.name),
        stopping: stopping.signal,
        ...auditOf(module, trail),
        ...rolesOptions(module, instance),
        ...(instance.manners && { manners: instance.manners }),
      });
      running.push({ module, instance, interceptors });
      direct.set(
        module.name,
        createDirectTransport({
          clock,
          timers,
          routes: instance.routes,
          interceptors,
          clientInterceptors: clientInterceptors({
            service: module.name,
            internalSecrets: NO_INTERNAL_SECRETS,
            tracing,
          }),
        }),
      );
    }
    for (const { module, instance, interceptors } of running) {
      const { leases = () => [], features = [] } = instance;
      if (!modules.some((each) => each.module === module && each.listen)) {
        table.join({ service: module.name, address: "", isServing: () => true, leases, features });
        continue;
      }
      const health = createHealth(
        module.descriptors.map((service) => service.typeName),
        instance.parts,
      );
      const { maxRequestBytes, bodyTimeout: bodyTimeoutMs, maxConnections, maxConcurrentStreams } = common;
      const listen = (place: Place, served: Pick<OwnPort, "descriptors" | "routes">, more: More) => {
        const routes = (router: ConnectRouter) => {
          served.routes(router);
          router.service(Health, healthService(health));
          registerReflection(router, [...served.descriptors, Health]);
        };
        const { manners } = instance;
        const bodies = { maxRequestBytes, bodyTimeoutMs, timers };
        const rpc = { routes, interceptors, ...bodies, clock, log, addresses, ...(manners && { manners }) };
        return startServer({
          place,
          rpc: createRpcHandler(rpc),
          ...(common.fastPath ? { fast: createFastPath(rpc) } : {}),
          door: createDoor({
            publicUrl: () => publicUrlOf(module.name),
            allowedHosts: () => [...common.allowedHosts, ...(instance.hosts?.() ?? [])],
            allowedOrigins: common.allowedOrigins,
            isOpen: common.auth === "open",
          }),
          origins: common.allowedOrigins,
          ...more,
          ...(manners && { manners }),
          maxConnections,
          maxConcurrentStreams,
          maxConnectionAgeMs: common.maxConnectionAge,
          certificates,
          random,
          log,
          timers,
        });
      };
      const operations = operationsRoutes(health, metricsOnServicePorts(common, metrics));
      const { descriptors } = module;
      const server = await listen(
        placeOf(common, module.name),
        { descriptors, routes: instance.routes },
        {
          routes: [
            ...observeRoutes(instance.http ?? [], {
              metrics,
              tracing: tracedAs(tracing, module.name),
              clock,
            }),
            ...operations,
          ],
          ...(instance.upgrades === undefined ? {} : { upgrades: instance.upgrades }),
          sharedPlace: sharedPlaceOf(common, module.name),
        },
      );
      servers.push({ server, health, module });
      listens(module.name, server.url);
      const isServing = () => health.serving;
      table.join({ service: module.name, address: server.url, isServing, leases, features });
      const warning = module.name === "gateway" ? publicUrlWarning(common.publicUrl, server.url) : undefined;
      if (warning !== undefined) log.warn({ listener: server.url, public_url: common.publicUrl }, warning);
      for (const ownPort of instance.ports ?? []) {
        ownPorts.push(
          await listen({ host: common.host, port: ownPort.port }, ownPort, { routes: operations }),
        );
      }
    }
    const health = servers.map((each) => each.health);
    ownPorts.push(...(await startMetrics(common, { metrics, health, certificates, random, log, timers })));
    for (const name of new Set(modules.flatMap(({ module }) => forwardedServices(module)))) {
      if (hosted.has(name)) continue;
      const onServing = (serves: boolean) => readiness.setPeer(name, serves);
      const transports = transportsTo(urlsOf(common, name), callOf(name), watched) ?? [connect(name)];
      const peer = new PeerWatch({ transports, timers, onServing });
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

/** Returns the quotas that a module counts; no quotas for a module whose calls other services count. */
function countedBy({ audit }: ServiceModule, quotas: Quotas): { quotas?: Quotas } {
  return audit?.isForwarding === true ? {} : { quotas };
}

/**
 * Returns the HTTP URL for a listener's URL: `http://localhost` for a UNIX socket, because clients need a host name;
 * any other URL unchanged.
 */
function httpUrl(url: string | undefined): string | undefined {
  return url?.startsWith("unix:") ? "http://localhost" : url;
}

/** The options of a server in addition to its RPCs: routes, upgrades and the second address. */
type More = Pick<ServerOptions, "routes" | "upgrades" | "sharedPlace">;

/** @throws SettingsError if the folder cannot be created, as where its path names a file */
function makeFolder(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new SettingsError(
      `the data folder ${dataDir} cannot be created (${code}); name another one with --data-dir or DEPUTE_DATA_DIR`,
      { cause },
    );
  }
}
