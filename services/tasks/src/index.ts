import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { servicesOf } from "@depute/core/services";
import { defineService, mergeSettings, type SettingsTable } from "@depute/service";
import { CORE_SETTINGS, type OpenModule, openCore } from "./core/index.ts";
import { MODULES } from "./modules.ts";
import { migrations } from "./schema.ts";
import { SESSION_MIGRATIONS } from "./sessions/index.ts";

const settings: SettingsTable & typeof CORE_SETTINGS = {
  ...mergeSettings(CORE_SETTINGS, ...MODULES.map((module) => module.settings)),
  ...CORE_SETTINGS,
};

/**
 * The audit log omits the allowed calls of these methods: a worker's calls under its lease, and its polls for tasks.
 * The audit log contains the dispatch that began the lease.
 */
const { method } = WorkerService;
const QUIET = [
  method.takeAssignments,
  method.acceptAssignment,
  method.startAssignment,
  method.heartbeatAssignment,
  method.reportProgress,
  method.reportPartial,
  method.saveCheckpoint,
];

/** The tasks service: the task engine and its modules. */
export const tasks = defineService({
  name: "tasks",
  audit: { quiet: QUIET },
  stores: { tasks: migrations, sessions: SESSION_MIGRATIONS },
  isReplicable: true,
  settings,
  descriptors: servicesOf("tasks"),

  async start(deps, settings) {
    const core = await openCore(deps, settings, MODULES);
    const open: OpenModule[] = [];
    const close = async () => {
      for (const module of open.reverse()) await module.close();
      await core.close();
    };
    try {
      for (const module of MODULES) open.push(await module.open(deps, core.engine, settings));
      await core.start();
      for (const module of open) await module.start?.();
    } catch (error) {
      // Closes the store and the open modules. Otherwise they would keep the process alive after the failed start.
      await close();
      throw error;
    }
    return {
      leases: () => [...core.leases(), ...open.flatMap((module) => module.leases?.() ?? [])],
      routes(router) {
        core.routes(router);
        for (const module of open) module.routes?.(router);
      },
      close,
    };
  },
});
