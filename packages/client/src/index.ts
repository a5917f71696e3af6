export { carryOut, Released, type WorkAtHand } from "./carry-out.ts";
export { clientsOver, connectTo, type DeputeClients, SERVICES } from "./clients.ts";
export { type Completion, Completions } from "./completions.ts";
export { type Creation, Creations } from "./creations.ts";
export { type Holder, holderHeaders, holderInterceptor } from "./holder.ts";
export {
  type Decide,
  type ReviewContext,
  type ReviewDecision,
  type Reviewer,
  type ReviewerOptions,
  startReviewer,
} from "./reviewer.ts";
export { type Work, type WorkContext, WorkFailure, type WorkResult, WorkSuspension } from "./work.ts";
export { startWorker, type Worker, type WorkerOptions } from "./worker.ts";
