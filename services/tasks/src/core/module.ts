import type { ConnectRouter } from "@connectrpc/connect";
import type { ServiceDeps, Settings, SettingsTable } from "@depute/service";
import type { Migration } from "@depute/store";
import type { TaskEngine } from "./port.ts";

/** A protocol or function that a module adds to the task engine, with its settings, tables and services. */
export interface TasksModule<Table extends SettingsTable = SettingsTable> {
  /** The name of the module's migrations in the store. */
  readonly name: string;
  readonly settings: Table;
  /** The migrations of the module's tables in the tasks store; empty if the module has no tables in that store. */
  readonly migrations: readonly Migration[];
  /**
   * Returns fingerprints of the keys that the module's tables depend on. A member's name is the key's file name without
   * `.key`.
   */
  keys?(deps: Pick<ServiceDeps, "keys">): Promise<Readonly<Record<string, string>>>;
  /**
   * Opens the module's resources and registers its observers and checks. Tasks do not change before {@link
   * OpenModule.start}.
   *
   * @throws SettingsError, or Error for an invalid setting; the module then closes the resources that it opened
   */
  open(deps: ServiceDeps, engine: TaskEngine, settings: Settings<Table>): OpenModule | Promise<OpenModule>;
}

/** A module that is open. */
export interface OpenModule {
  /** Registers the module's services; absent if it serves none. */
  readonly routes?: (router: ConnectRouter) => void;
  /** Returns the names of the leases of the module's own store that this process holds. Operators see these names. */
  readonly leases?: () => readonly string[];
  /** Begins background work. The service calls this function after every module is open. */
  start?(): void | Promise<void>;
  /** Ends background work and closes the module's resources. The engine is still open at this time. */
  close(): Promise<void>;
}

/** Returns the module unchanged. The call gives TypeScript the exact types of the module's settings. */
export function defineModule<Table extends SettingsTable>(module: TasksModule<Table>): TasksModule<Table> {
  return module;
}
