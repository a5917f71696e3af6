export { type AgentDraft, type CapabilityDraft, registerAgent } from "./agent.ts";
export { faultOfAuditRecordProof } from "./audit-proof.ts";
export { clientsOver, connectTo, type DeputeClients, SERVICES } from "./clients.ts";
export { type Completion, Completions } from "./completions.ts";
export { type ConnectOptions, connect, type Delegation, Depute, type TlsOptions } from "./connect.ts";
export { type Creation, Creations } from "./creations.ts";
export { type Holder, holderHeaders, holderInterceptor } from "./holder.ts";
export { createKey, keyFromSeed, seedOf } from "./keys.ts";
export { type NarrowedToken, type Narrowing, narrowToken } from "./narrow.ts";
export { type Plain, plain } from "./plain.ts";
export { ProofSessions, type SessionHolder, sessionInterceptor } from "./proof-session.ts";
export { metadataOf, type Reason, reasonOf, TaskError, violationsOf } from "./reasons.ts";
export {
  type Decide,
  type ReviewContext,
  type ReviewDecision,
  type Reviewer,
  type ReviewerOptions,
  startReviewer,
} from "./reviewer.ts";
export { type AssignmentDeps, LeaseLost, Released, runAssignment } from "./run-assignment.ts";
export { TaskHandle, type TaskResult } from "./task-handle.ts";
export type { TaskState, TaskUpdate } from "./task-update.ts";
export type { Grant } from "./tokens.ts";
export {
  type QuestionKind,
  type Work,
  type WorkContext,
  WorkFailure,
  type WorkResult,
  WorkSuspension,
} from "./work.ts";
export { startWorker, type Worker, type WorkerOptions } from "./worker.ts";
