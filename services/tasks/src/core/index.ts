/**
 * The task engine: the life cycle of tasks, their queue, contexts and artifacts. Modules import only this file from the
 * core. Rules of modules import only `rules/index.ts` of the core.
 */

export type { Target } from "./creation/admission.ts";
export { workOf } from "./creation/admission.ts";
export type { Admitted } from "./creation/create-task.ts";
export { asCaller, type Caller } from "./handlers/context.ts";
export type { ResultCheck, TaskChange, TaskEventName } from "./hooks.ts";
export { defineModule, type OpenModule, type TasksModule } from "./module.ts";
export type { NamedWorker, TaskEngine, TaskStore } from "./port.ts";
export type { WorkerStream } from "./queue/claim.ts";
export { openReviewQueue } from "./review-queue.ts";
export type { Decision, ResultReviews, ReviewListener } from "./reviews-port.ts";
export * from "./rules/index.ts";
export { type Core, openCore } from "./runtime.ts";
export { CORE_SETTINGS, type CoreSettings, ORCHESTRATORS, POLL_INTERVAL, RETENTION } from "./settings.ts";
export type { Cursor } from "./store/cursor-rows.ts";
