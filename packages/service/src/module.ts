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

/** All parts of the process that a service may use. */
export interface ServiceDeps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Random source for spreading work over time, such as the jitter of backoffs. */
  readonly random: Random;
  readonly bus: Bus;
  /**
   * Returns a transport to another service, wherever it runs. A call to a service that is not up fails with
   * UNAVAILABLE.
   */
  connect(name: ServiceName): Transport;
  /** Identifies callers and checks their permissions: `createAuthority` over the tokens service. */
  readonly authority: Authority;
  /** Whether a call without credentials is served (`open`), which is for loopback only. */
  readonly auth: "open" | "required";
  /** Whether a configured credential belongs to the principal. */
  hasCredential(principal: string): boolean;
  /** Returns the principal in a request's headers, for a log line; see `presentedPrincipal`. */
  principalOf(headers: IncomingHttpHeaders, certificate?: string): string;
  /**
   * Authenticates a request over plain HTTP by a credential that is no holder proof: a configured secret, a token of an
   * issuer, or a client certificate.
   *
   * @param certificate the SPIFFE id of the connection's client, as `certificateOfRequest` returns it
   * @returns the principal
   * @throws DeputeError UNAUTHENTICATED, also without credentials on an open platform
   */
  loginOf(headers: IncomingHttpHeaders, certificate?: string): Promise<string>;
  /**
   * Returns the subject of an issuer's token that its bearer exchanges (RFC 8693).
   *
   * @throws DeputeError UNAUTHENTICATED with the metadata `fault`
   */
  subjectOf(subject: SubjectToken): Promise<ProvenSubject>;
  /** Returns the issuers whose tokens are accepted as Bearer credentials (DEPUTE_IDENTITIES_FILE). */
  issuers(): readonly string[];
  /** The keys of the platform, in files or in the database. */
  readonly keys: KeySource;
  /** The folder for the service's files; it exists. */
  readonly dataDir: string;
  /**
   * Returns the place of one of the service's stores, for `openStore`. The service is unhealthy while the store
   * is unusable.
   *
   * @param name the name of the store's file or schema, e.g. `tasks`
   * @param keys fingerprints of the keys on which the store depends, by the names of their files without
   * `.key`; the store does not open with other keys
   */
  storeAt(name: string, keys?: Readonly<Record<string, string>>): StorePlace;
  /** Whether other processes may run the service on the same database at the same time. */
  readonly isReplicated: boolean;
  /**
   * Opens memory that all processes of the platform share. Each namespace has a separate memory. Undefined without
   * Redis. The caller closes the memory.
   */
  readonly sharedMemory?: ((namespace: string) => SharedMemory) | undefined;
  /** The replicas of all services. */
  readonly replicas: Pick<ReplicaTable, "list">;
  /** Records decisions that are no RPCs of the module; undefined for a module without `audit`. */
  readonly audit: Pick<AuditTrail, "assertRoom" | "add"> | undefined;
  /**
   * Returns the place outside the data folder for the head of a log; undefined if the settings name no place.
   *
   * @param log the proofs of the log, for a witness that is another Depute
   * @throws SettingsError for a place that cannot be used
   */
  witnessFor(name: LogName, log: WitnessedLog): WitnessPlace | undefined;
  readonly metrics: Registry;
  /** Registers the service's metrics of DOMAIN_METRICS. */
  readonly domainMetrics: DomainMetrics;
  /** Whether the service is healthy and takes calls; false before it listens. */
  readonly isServing: () => boolean;
  /** The address under which clients know the platform, without a trailing slash. */
  readonly publicUrl: string;
  /** Finds the network address of a request's client. */
  readonly addresses: ClientAddresses;
  /** The quotas of callers. A service reads here how many records, such as open tasks, one caller may have. */
  readonly quotas: Pick<Quotas, "maxOpenTasks" | "tooManyTasks">;
  /** The turns of callers in this process, for requests that are no RPCs. */
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
   * Whether several processes may run the module on the same database. While `isReplicated` is true, such a module
   * caches no rows, or compares cached rows with the store before each decision. Default: false.
   */
  readonly isReplicable?: boolean;
  /** The migrations of the module's own stores, by the names that `storeAt` gets. */
  readonly stores?: Readonly<Record<string, Migrations>>;
  /** How the host records the module's decisions in the audit log; absent where the module records its own. */
  readonly audit?: AuditOfModule;
  /** The RPC services of the module, for reflection and health. */
  readonly descriptors: readonly DescService[];
  /**
   * Contracts that the module serves by calling other services, by the name of the called service. The health
   * of a contract is the health of the called service.
   */
  readonly forwards?: Readonly<Partial<Record<ServiceName, readonly DescService[]>>>;
  /** Opens stores and begins background work. Calls to other services must wait until the first request. */
  start(deps: ServiceDeps, settings: Settings<Table>): Promise<ServiceInstance>;
}

/** How the decisions of a module reach the audit log. */
export interface AuditOfModule {
  /** Methods whose allowed calls are not recorded, because an earlier recorded call already allowed them. */
  readonly quiet?: readonly DescMethod[];
  /** Whether other services decide on the calls, and record them. Then only refused credentials are recorded. */
  readonly isForwarding?: boolean;
}

/** A port that serves only some RPCs of a module, and their health. */
export interface OwnPort {
  /** The port's number; 0 for any free port. */
  readonly port: number;
  readonly descriptors: readonly DescService[];
  readonly routes: (router: ConnectRouter) => void;
}

/** A running service. */
export interface ServiceInstance {
  /** Registers the implementations. */
  readonly routes: (router: ConnectRouter) => void;
  /** Plain HTTP routes in addition to the RPCs. */
  readonly http?: readonly HttpRoute[];
  /** The differences between these services and the platform's own rules, in every call. */
  readonly manners?: Manners;
  /** The roles that the module's settings give to principals; absent for none. */
  readonly rolesBySettings?: RolesBySettings;
  /** Records a call that is refused for its roles; absent for a module with an audit trail. */
  readonly onRoleDenied?: OnRoleDenied;
  /** Additional ports; each port serves only some RPCs of the module. */
  readonly ports?: readonly OwnPort[];
  /** Virtual hosts that clients may name, in the form of DEPUTE_ALLOWED_HOSTS. */
  readonly hosts?: () => readonly string[];
  /** The states of the parts on which the service depends. Health checks report each state. */
  readonly parts?: HealthParts;
  /** Addresses where a connection becomes a WebSocket. */
  readonly upgrades?: readonly UpgradeRoute[];
  /** Returns the names of the leases that this process holds, for operators. */
  readonly leases?: () => readonly string[];
  /** Called once when no call is open any more. Ends background work and closes stores. */
  close(): Promise<void>;
}

/** Returns the module unchanged; the type parameter keeps the literal types of the settings. */
export function defineService<Table extends SettingsTable>(
  module: ServiceModule<Table>,
): ServiceModule<Table> {
  return module;
}
