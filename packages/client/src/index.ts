export { clientsOver, connectTo, type DeputeClients } from "./clients.ts";
export { type Holder, holderHeaders, holderInterceptor } from "./holder.ts";
export {
  startWorker,
  type Work,
  type WorkContext,
  type Worker,
  type WorkerOptions,
  WorkFailure,
  type WorkResult,
} from "./worker.ts";
