import { randomBytes } from "node:crypto";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  addressOf,
  type CommonSettings,
  keyFiles,
  type Logger,
  portOf,
  SettingsError,
  type SettingsTable,
} from "@depute/service";
import { MODULES } from "../modules.ts";
import { requireFree } from "../ports.ts";
import { startChild } from "../processes.ts";
import { findRedis, prepareLocalRedis } from "../redis.ts";
import { environmentOf } from "./environment.ts";
import { type ClusterPlan, type PlannedProcess, planCluster } from "./plan.ts";
import { prepareLocalPostgres } from "./postgres.ts";
import { Supervisor } from "./supervisor.ts";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));
/** If a process has not ended this many milliseconds after the drain timeout, it is killed. */
const END_MS = 2_000;

export interface ClusterOptions {
  readonly table: SettingsTable;
  readonly settings: CommonSettings;
  readonly replicas: number;
  readonly log: Logger;
}

/** The processes of a platform on this machine, and the Redis and Postgres that they need. */
export class Cluster {
  readonly plan: ClusterPlan;
  readonly #options: ClusterOptions;
  /** The supervisors of Redis and Postgres, if this cluster starts them. */
  readonly #backends: Supervisor[] = [];
  readonly #services: { readonly supervisor: Supervisor; readonly planned: PlannedProcess }[] = [];
  #removeSocket = () => {};
  #stopped: Promise<void> | undefined;

  /** @throws SettingsError if two processes would listen on the same port */
  constructor(options: ClusterOptions) {
    this.#options = options;
    this.plan = planCluster(options.settings, options.replicas, MODULES);
  }

  /**
   * Starts Redis and Postgres if the cluster needs its own, and then all processes at the same time.
   *
   * @throws SettingsError if an address is not free, or Redis or Postgres is not installed; otherwise the error of the
   * first start that fails
   */
  async start(): Promise<void> {
    const { settings, replicas } = this.#options;
    for (const { module, settings: own } of this.plan.processes)
      await requireFree(settings.host, portOf({ ...settings, ...own }, module), `${module}Port`);
    if (replicas > 1) await requireFree(settings.host, settings.gatewayPort, "gatewayPort");
    try {
      const [redisUrl, postgresUrl] = await Promise.all([this.#redis(), this.#postgres()]);
      const shared = { ...this.#shared(), redisUrl, postgresUrl, ...this.plan.urls };
      await Promise.all(this.plan.processes.map((planned) => this.#service(planned, shared)));
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Restarts the processes one after the other. All other processes serve calls in this time. */
  async restartInTurn(): Promise<void> {
    const { log } = this.#options;
    for (const { supervisor } of this.#services) {
      log.info({ process: supervisor.name }, "restarting");
      await supervisor.replace();
    }
  }

  /** Ends the gateways first, so that no call reaches a service that is stopping. Redis and Postgres end last. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopInOrder();
    return this.#stopped;
  }

  async #stopInOrder(): Promise<void> {
    const isGateway = ({ planned }: { planned: PlannedProcess }) => planned.module === "gateway";
    const [gateways, services] = [true, false].map((wanted) =>
      this.#services.filter((each) => isGateway(each) === wanted).map(({ supervisor }) => supervisor),
    );
    for (const group of [gateways, services, this.#backends])
      await Promise.all((group ?? []).map((supervisor) => supervisor.stop()));
    this.#removeSocket();
    rmSync(this.#stateFile, { force: true });
  }

  /** Returns the settings that are equal for all processes of the cluster. */
  #shared(): Readonly<Record<string, unknown>> {
    const { settings, replicas } = this.#options;
    return {
      ...settings,
      publicUrl: settings.publicUrl || addressOf(settings, "gateway"),
      internalSecret: settings.internalSecret || randomBytes(32).toString("base64url"),
      masterKeyFile: replicas > 1 ? this.#masterKeyFile() : settings.masterKeyFile,
    };
  }

  /**
   * Returns the path of the file with the master key, which all replicas share. If no file is configured, creates it in
   * the data folder.
   */
  #masterKeyFile(): string {
    const { dataDir, masterKeyFile } = this.#options.settings;
    if (masterKeyFile !== "") return masterKeyFile;
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    keyFiles(dataDir).openMaster();
    return join(dataDir, "master.key");
  }

  async #redis(): Promise<string> {
    const { redisUrl } = this.#options.settings;
    if (redisUrl !== "") return redisUrl;
    if (!findRedis())
      throw new SettingsError("the PATH has no redis-server: install one, or set DEPUTE_REDIS_URL");
    const redis = await prepareLocalRedis();
    await this.#supervise(this.#backends, "redis", () => redis.start());
    return redis.url;
  }

  async #postgres(): Promise<string> {
    const { settings, replicas } = this.#options;
    if (settings.postgresUrl !== "" || replicas === 1) return settings.postgresUrl;
    const postgres = await prepareLocalPostgres(settings.dataDir);
    this.#removeSocket = postgres.removeSocket;
    await this.#supervise(this.#backends, "postgres", () => postgres.start());
    return postgres.url;
  }

  async #service(planned: PlannedProcess, shared: Readonly<Record<string, unknown>>): Promise<void> {
    const { table } = this.#options;
    const env = environmentOf(table, { ...shared, ...planned.settings });
    const args = [...process.execArgv, MAIN, "serve", planned.module];
    const ready = `${planned.module} listens on `;
    const list: Supervisor[] = [];
    const started = this.#supervise(list, planned.name, () =>
      startChild(planned.name, process.execPath, args, env, ready),
    );
    const [supervisor] = list;
    if (supervisor !== undefined) this.#services.push({ supervisor, planned });
    await started;
  }

  /** Creates a supervisor, adds it to a list, and starts its process. */
  async #supervise(
    list: Supervisor[],
    name: string,
    start: ConstructorParameters<typeof Supervisor>[0]["start"],
  ) {
    const { log, settings } = this.#options;
    const graceMs = settings.drainTimeout + END_MS;
    const supervisor = new Supervisor({ name, start, log, graceMs, onChange: () => this.#writeState() });
    list.push(supervisor);
    await supervisor.start();
  }

  get #stateFile(): string {
    return join(this.#options.settings.dataDir, "cluster.json");
  }

  /** Writes the addresses and process ids of the processes to the file `cluster.json` in the data folder. */
  #writeState(): void {
    if (this.#stopped !== undefined) return;
    const services = this.#services.map(({ supervisor, planned }) => ({
      name: planned.name,
      service: planned.module,
      url: planned.url,
      pid: supervisor.pid ?? null,
      restarts: supervisor.restarts,
    }));
    const backends = this.#backends.map(({ name, pid = null, restarts }) => ({ name, pid, restarts }));
    mkdirSync(this.#options.settings.dataDir, { recursive: true, mode: 0o700 });
    // The rename replaces the file atomically, so that no reader sees an incomplete file.
    writeFileSync(`${this.#stateFile}.new`, `${JSON.stringify({ services, backends }, null, 2)}\n`);
    renameSync(`${this.#stateFile}.new`, this.#stateFile);
  }
}
