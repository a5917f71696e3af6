import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import type { Clock, Timers } from "@depute/core";
import type { Authority } from "./authority.ts";
import type { HttpRoute } from "./http-routes.ts";
import type { Logger } from "./log.ts";
import type { Registry } from "./metrics.ts";
import type { ModuleName, ServiceName } from "./names.ts";
import type { Manners } from "./service-manners.ts";
import type { Settings, SettingsTable } from "./settings.ts";
import type { StorePlace } from "./store-place.ts";
import type { UpgradeRoute } from "./upgrades.ts";

/** What a service is given; nothing else of the process is its business. */
export interface ServiceDeps {
  readonly log: Logger;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly bus: Bus;
  /** How to reach another service, wherever it runs. One that is not up shows as UNAVAILABLE when it is called. */
  connect(name: ServiceName): Transport;
  /** Who calls, and whether they may: `createAuthority` over the tokens service. */
  readonly authority: Authority;
  /** Whether a call without credentials is served (`open`), which is for loopback only. */
  readonly auth: "open" | "required";
  /** Whether a configured credential belongs to the principal. */
  hasCredential(principal: string): boolean;
  /** The folder for the service's files; it exists. */
  readonly dataDir: string;
  /**
   * What `openStore` needs of the process for a store of the service. The name is that of its file or schema, e.g. `tasks`.
   * The health of the service follows the store.
   *
   * @param keys fingerprints of the keys that the store depends on, by the names of their files without `.key`: the store
   *   does not open when it was made with others
   */
  storeAt(name: string, keys?: Readonly<Record<string, string>>): StorePlace;
  readonly metrics: Registry;
  /** Whether the service serves, as its health says; false before it listens. */
  readonly isServing: () => boolean;
  /** The address under which clients know the platform, without a trailing slash. */
  readonly publicUrl: string;
  /** Aborts when the process begins to drain: long answers end. */
  readonly stopping: AbortSignal;
}

/** A service as a part that can be put into any process. */
export interface ServiceModule<Table extends SettingsTable = SettingsTable> {
  readonly name: ModuleName;
  /** The settings that are the service's own; those of every server are in common-settings.ts. */
  readonly settings: Table;
  /** What it serves, for reflection and health. */
  readonly descriptors: readonly DescService[];
  /** Which of these it serves by calling other services: their health is that of the called one. */
  readonly forwards?: Readonly<Partial<Record<ServiceName, readonly DescService[]>>>;
  /** Opens stores and begins background work; calls to other services have to wait until the first request. */
  start(deps: ServiceDeps, settings: Settings<Table>): Promise<ServiceInstance>;
}

/** A port that serves some RPCs of a module, and its health. */
export interface OwnPort {
  /** 0: any free one. */
  readonly port: number;
  readonly descriptors: readonly DescService[];
  readonly routes: (router: ConnectRouter) => void;
}

/** A service that runs. */
export interface ServiceInstance {
  /** Registers the implementations. */
  readonly routes: (router: ConnectRouter) => void;
  /** Plain HTTP beside the RPCs. */
  readonly http?: readonly HttpRoute[];
  /** How services among these differ from the platform's own in every call. */
  readonly manners?: Manners;
  /** Ports beside the module's own, each with services of its own. */
  readonly ports?: readonly OwnPort[];
  /** Virtual hosts that clients may name, in the form of DEPUTE_ALLOWED_HOSTS. */
  readonly hosts?: () => readonly string[];
  /** Addresses whose connections become WebSockets. */
  readonly upgrades?: readonly UpgradeRoute[];
  /** Called once, when no call is open any more: ends background work and closes stores. */
  close(): Promise<void>;
}

/** Only tells the compiler to keep the settings' own types. */
export function defineService<Table extends SettingsTable>(
  module: ServiceModule<Table>,
): ServiceModule<Table> {
  return module;
}
