import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import type { Bus, SharedMemory } from "@depute/bus";
import type { Clock, Random, Timers } from "@depute/core";
import type { Migrations } from "@depute/store";
import type { AuditTrail } from "./audit/audit-trail.ts";
import type { Authority } from "./authority.ts";
import type { ClientAddresses } from "./client-address.ts";
import type { DomainMetrics } from "./domain-metrics.ts";
import type { HealthParts } from "./health.ts";
import type { HttpRoute } from "./http-routes.ts";
import type { ProvenSubject, SubjectToken } from "./identities/token-verifier.ts";
import type { OnRoleDenied } from "./interceptors/roles.ts";
import type { Logger } from "./log.ts";
import type { Registry } from "./metrics.ts";
import type { ModuleName, ServiceName } from "./names.ts";
import type { KeySource } from "./platform-keys.ts";
import type { FairTurns } from "./quotas/fair-turns.ts";
import type { Quotas } from "./quotas/quotas.ts";
import type { ReplicaTable } from "./replica-table.ts";
import type { RolesBySettings } from "./roles/caller-roles.ts";
import type { Manners } from "./service-manners.ts";
import type { Settings, SettingsTable } from "./settings.ts";
import type { StorePlace } from "./store-place.ts";
import type { UpgradeRoute } from "./upgrades.ts";
import type { WitnessedLog } from "./witness/depute-place.ts";
import type { LogName } from "./witness/head-messages.ts";
import type { WitnessPlace } from "./witness/witness-place.ts";

/** The parts of the process that a service may use. */
export interface ServiceDeps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Random source for spreading work over time, such as the jitter of backoffs. */
  readonly random: Random;
  readonly bus: Bus;
  /**
   * Returns a transport to another service, wherever it runs. A call to a service that does not run fails with
   * UNAVAILABLE.
   */
  connect(name: ServiceName): Transport;
  /** Identifies callers and checks their permissions: `createAuthority` over the tokens service. */
  readonly authority: Authority;
  /** `open` if the process serves calls without credentials, which it does only on loopback; otherwise `required`. */
  readonly auth: "open" | "required";
  /** Whether the credentials file has a secret of the principal, or the identities file names the principal. */
  hasCredential(principal: string): boolean;
  /** Returns the principal that a request's headers prove, for a log line; see `presentedPrincipal`. */
  principalOf(headers: IncomingHttpHeaders, certificate?: string): string;
  /**
   * Authenticates a request over plain HTTP by a configured secret, a login token (JWT of an issuer), or a client
   * certificate.
   *
   * @param certificate the SPIFFE id of the connection's client, as `certificateOfRequest` returns it
   * @returns the caller's principal
   * @throws DeputeError UNAUTHENTICATED, also without credentials on an open platform
   */
  loginOf(headers: IncomingHttpHeaders, certificate?: string): Promise<string>;
  /**
   * Verifies a login token or identity assertion that its bearer wants to exchange (RFC 8693), and returns its subject.
   *
   * @throws DeputeError UNAUTHENTICATED with the metadata `fault`
   */
  subjectOf(subject: SubjectToken): Promise<ProvenSubject>;
  /** Returns the issuers of the accepted login tokens (DEPUTE_IDENTITIES_FILE). */
  issuers(): readonly string[];
  /** The keys of the platform, in files or in the database. */
  readonly keys: KeySource;
  /** The folder for the service's files; it exists. */
  readonly dataDir: string;
  /**
   * Returns the location of one of the service's stores, with the options for `openStore`. The service is unhealthy
   * while the store is unusable.
   *
   * @param name the name of the store's file or schema, e.g. `tasks`
   * @param keys fingerprints of the keys on which the store depends, by the names of their files without `.key`; the
   * store does not open with other keys
   */
  storeAt(name: string, keys?: Readonly<Record<string, string>>): StorePlace;
  /** Whether other processes may run the service on the same database at the same time. */
  readonly isReplicated: boolean;
  /**
   * Opens memory that all processes of the platform share. Each namespace has a separate memory. Undefined without
   * Redis. The service closes the memory that it opened.
   */
  readonly sharedMemory?: ((namespace: string) => Promise<SharedMemory>) | undefined;
  /** The replicas of all services. */
  readonly replicas: Pick<ReplicaTable, "list">;
  /** Records decisions that the module makes outside of RPCs; undefined for a module without `audit`. */
  readonly audit: Pick<AuditTrail, "assertRoom" | "add"> | undefined;
  /**
   * Returns the witness of a log: a place outside the data folder for its head. Undefined if the settings name no
   * witness.
   *
   * @param log returns proofs of the log, for a witness that is another Depute platform
   * @throws SettingsError for a place that cannot be used
   */
  witnessFor(name: LogName, log: WitnessedLog): WitnessPlace | undefined;
  readonly metrics: Registry;
  /** Registers the service's metrics of DOMAIN_METRICS. */
  readonly domainMetrics: DomainMetrics;
  /** Whether the service is healthy and takes calls; false before it listens. */
  readonly isServing: () => boolean;
  /** The URL under which clients reach the platform, without a trailing slash. */
  readonly publicUrl: string;
  /** Finds the network address of a request's client. */
  readonly addresses: ClientAddresses;
  /** The quotas of callers. A service uses them to limit the open tasks of one caller. */
  readonly quotas: Pick<Quotas, "maxOpenTasks" | "tooManyTasks">;
  /** The turns of callers in this process, for requests other than RPCs. */
  readonly turns: Pick<FairTurns, "enter">;
  /** Aborts when the process begins to drain, so that long responses end. */
  readonly stopping: AbortSignal;
}

/** A service as a module that any process can host. */
export interface ServiceModule<Table extends SettingsTable = SettingsTable> {
  readonly name: ModuleName;
  /** The settings of this service alone. Settings of every server are in common-settings.ts. */
  readonly settings: Table;
  /**
   * Whether several processes may run the module on the same database. If so, the module must not decide by cached rows
   * while `isReplicated` is true, unless it compares them with the store before each decision. Default: false.
   */
  readonly isReplicable?: boolean;
  /** The migrations of the module's own stores, by the names that `storeAt` gets. */
  readonly stores?: Readonly<Record<string, Migrations>>;
  /**
   * How the host records the module's decisions in the audit log; absent if the module records its decisions itself.
   */
  readonly audit?: AuditOfModule;
  /** The RPC services of the module, for reflection and health. */
  readonly descriptors: readonly DescService[];
  /**
   * Contracts that the module serves by calling another service, by the name of that service. The health of such a
   * contract is the health of that service.
   */
  readonly forwards?: Readonly<Partial<Record<ServiceName, readonly DescService[]>>>;
  /**
   * Opens stores and begins background work. It must not call other services; the module may call them from its first
   * request on.
   */
  start(deps: ServiceDeps, settings: Settings<Table>): Promise<ServiceInstance>;
}

/** How the decisions of a module reach the audit log. */
export interface AuditOfModule {
  /**
   * Methods whose allowed calls are not recorded, because the record of an earlier call covers the same work, e.g.
   * heartbeats.
   */
  readonly quiet?: readonly DescMethod[];
  /**
   * Whether the module forwards its calls to services that record their own decisions. Then the module records only
   * refused credentials.
   */
  readonly isForwarding?: boolean;
}

/** A port that serves only some RPC services of a module, and their health. */
export interface OwnPort {
  /** The port's number; 0 for any free port. */
  readonly port: number;
  readonly descriptors: readonly DescService[];
  readonly routes: (router: ConnectRouter) => void;
}

/** A running service, as `start` of its module returns it. */
export interface ServiceInstance {
  /** Registers the implementations of the service's RPCs. */
  readonly routes: (router: ConnectRouter) => void;
  /** Plain HTTP routes in addition to the RPCs. */
  readonly http?: readonly HttpRoute[];
  /** What the module's contracts do differently from the platform's rules, by contract; absent for no differences. */
  readonly manners?: Manners;
  /** The roles that the module's settings give to principals; absent for none. */
  readonly rolesBySettings?: RolesBySettings;
  /** Records a call that is refused for its roles; absent for a module with an audit trail. */
  readonly onRoleDenied?: OnRoleDenied;
  /** Additional ports; each port serves only some RPCs of the module. */
  readonly ports?: readonly OwnPort[];
  /** Virtual hosts that clients may name, in the form of DEPUTE_ALLOWED_HOSTS. */
  readonly hosts?: () => readonly string[];
  /** The states of the parts on which the service depends. The health report shows each state. */
  readonly parts?: HealthParts;
  /** Addresses where a connection becomes a WebSocket. */
  readonly upgrades?: readonly UpgradeRoute[];
  /** Returns the names of the leases that this process holds, for operators. */
  readonly leases?: () => readonly string[];
  /** Names of features that all replicas of the service must have before one of them uses it. */
  readonly features?: readonly string[];
  /** Called once, after the last call has ended. Ends background work and closes stores. */
  close(): Promise<void>;
}

/** Returns the module unchanged; its type parameter keeps the literal types of the settings. */
export function defineService<Table extends SettingsTable>(
  module: ServiceModule<Table>,
): ServiceModule<Table> {
  return module;
}
