import type { Transport } from "@connectrpc/connect";
import type { Bus, SharedMemory } from "@depute/bus";
import type { Clock, Random, Timers } from "@depute/core";
import type { StoreLostError } from "@depute/store";
import type { CommonSettings } from "./common-settings.ts";
import type { Logger } from "./log.ts";
import type { Registry } from "./metrics.ts";
import type { ServiceModule } from "./module.ts";
import type { ModuleName, ServiceName } from "./names.ts";
import type { Settings, SettingsTable } from "./settings.ts";

/** One service to run in this process. */
export interface HostedModule<Table extends SettingsTable = SettingsTable> {
  readonly module: ServiceModule<Table>;
  readonly settings: Settings<Table>;
  /** Whether the service listens on a port. If not, only the other services of the process can call it. */
  readonly listen: boolean;
}

export interface HostOptions {
  modules: readonly HostedModule[];
  common: CommonSettings;
  /** The message bus of the process. The host does not close it. */
  bus: Bus;
  /** Opens memory that the platform's processes share; absent without Redis. */
  sharedMemory?: ((namespace: string) => Promise<SharedMemory>) | undefined;
  log: Logger;
  metrics?: Registry;
  clock?: Clock;
  timers?: Timers;
  /** Random source that spreads work over time; the system's source when absent. */
  random?: Random;
  /** The process's name in traces. */
  name?: string;
  /** The version of the program, for operators. */
  version?: string;
  /** Called once, when this process can never use one of its stores again. The process must then end. */
  onLost?: (error: StoreLostError) => void;
}

/** The running services of this process. */
export interface Host {
  /** The base address of each service that listens, e.g. `http://127.0.0.1:8080`. */
  readonly urls: Readonly<Partial<Record<ModuleName, string>>>;
  readonly metrics: Registry;
  /** Returns a transport to a service, in this process or in another one, for calls between services. */
  connect(name: ServiceName): Transport;
  /** Drains the process, and closes all its services. Every call returns the same promise. */
  stop(): Promise<void>;
}
