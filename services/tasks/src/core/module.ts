import type { ConnectRouter } from "@connectrpc/connect";
import type { ServiceDeps, Settings, SettingsTable } from "@depute/service";
import type { Migration } from "@depute/store";
import type { TaskEngine } from "./port.ts";

/** A wire or a duty beside the task engine, with its own settings, tables and services. */
export interface TasksModule<Table extends SettingsTable = SettingsTable> {
  /** Names its migrations in the store. */
  readonly name: string;
  readonly settings: Table;
  /** Its tables in the store of the tasks; none for a module without tables there. */
  readonly migrations: readonly Migration[];
  /** Fingerprints of the keys that its tables depend on, by the names of their files without `.key`. */
  keys?(deps: Pick<ServiceDeps, "dataDir">): Readonly<Record<string, string>>;
  /**
   * Opens what the module needs and registers its observers and checks. Tasks do not change before {@link OpenModule.start}.
   *
   * @throws SettingsError; what it has opened by then it closes itself
   */
  open(deps: ServiceDeps, engine: TaskEngine, settings: Settings<Table>): OpenModule | Promise<OpenModule>;
}

/** A module that is open. */
export interface OpenModule {
  /** Registers its services; absent where it serves none. */
  readonly routes?: (router: ConnectRouter) => void;
  /** Begins background work, once every module is open. */
  start?(): void | Promise<void>;
  /** Ends background work and closes what the module has opened. The engine is still open. */
  close(): Promise<void>;
}

/** Keeps the settings' own types. */
export function defineModule<Table extends SettingsTable>(module: TasksModule<Table>): TasksModule<Table> {
  return module;
}
