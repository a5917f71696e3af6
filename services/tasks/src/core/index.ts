/**
 * The task engine: the life cycle of tasks, their queue, contexts and artifacts. Modules import this file, their rules
 * `rules/index.ts`, and no other file of the core.
 */
export { asCaller, type Caller } from "./caller.ts";
export type { Target } from "./creation/admission.ts";
export type { Admitted } from "./creation/create-task.ts";
export { workOf } from "./creation/delegation-policy.ts";
export type { ResultCheck, TaskChange } from "./hooks.ts";
export { defineModule, type OpenModule, type TasksModule } from "./module.ts";
export type { NamedWorker, TaskEngine, TaskStore } from "./port.ts";
export type { WorkerStream } from "./queue/claim.ts";
export type { Decision, ResultReviews, ReviewListener } from "./reviews-port.ts";
export * from "./rules/index.ts";
export { type Core, openCore } from "./runtime.ts";
export { CORE_SETTINGS, type CoreSettings, ORCHESTRATORS, POLL_INTERVAL, RETENTION } from "./settings.ts";
export type { Cursor } from "./store/cursor-rows.ts";
