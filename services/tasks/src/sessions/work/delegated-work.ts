import { create, fromJson, type JsonObject } from "@bufbuild/protobuf";
import { durationFromMs, type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { objectOf, type Session, type SessionObject, workOf } from "@depute/asp";
import { DelegationAuthority, DelegationAuthoritySchema } from "@depute/contracts/asp/v0/asp_common_pb";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { TaskLimitsSchema, TaskOutputSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { type Clock, ErrorReason, type Timers } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { fromConnectError, type Logger, Outbox, ownHeaders, type WorkLease } from "@depute/service";
import { asCaller, type TaskEngine } from "../../core/index.ts";
import type { SessionEngine } from "../engine/engine.ts";
import { readMessages, readParties, readSession } from "../store/session-rows.ts";
import { seenTo, setTask, type WorkRow, worksDue } from "../store/work-rows.ts";

/** Timeout in milliseconds of each call to another service that the admission of a task makes. */
const TIMEOUT_MS = 10_000;

/**
 * Errors that a retry would get again. After one of these errors, the delegation gets no task, and watchers of the
 * delegation get no events.
 */
const FINAL: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.AGENT_NOT_FOUND,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.INVALID_REQUEST,
  ErrorReason.TASK_ID_TAKEN,
]);

export interface DelegatedWorkOptions {
  readonly engine: SessionEngine;
  readonly tasks: TaskEngine;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  readonly lease: WorkLease | undefined;
}

/**
 * Creates and ends the tasks of delegations in sessions. ASP does not define the work, so these rules are Depute's
 * choices. An accepted delegation creates a task of the delegator. The delegate's signed report becomes the task's
 * result, even if a worker has the task. If the task's state allows no result, or the delegation ends without a report,
 * the task is cancelled. A message's transaction records the change of a delegation; the update of its task follows.
 */
export function delegatedWork({
  engine,
  tasks,
  clock,
  timers,
  log,
  lease,
}: DelegatedWorkOptions): Outbox<WorkRow> {
  const { store } = engine;
  return new Outbox<WorkRow>({
    lease,
    timers,
    log,
    failureMessage: "the task of a delegation could not be updated",
    first: (limit) => store.read((tx) => worksDue(tx, limit)),
    drop: (row) => store.write((tx) => seenTo(tx, row)),
    async tell(row, signal) {
      const work = await read(engine, row);
      if (work === undefined) return;
      const { session, delegation, report } = work;
      const state = workOf(session, delegation);
      let { taskId } = row;
      if (taskId === "" && (state === "going" || state === "reported")) {
        const options = { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS };
        try {
          taskId = await begin(tasks, clock, work, options);
        } catch (thrown) {
          const refusal = fromConnectError(thrown);
          if (!FINAL.has(refusal.reason)) throw thrown;
          log.info(
            { err: refusal, session: session.sessionId },
            "a delegation gets no task, because its creation was refused",
          );
          return;
        }
        await store.write((tx) => setTask(tx, row, taskId));
        engine.wake(session.sessionId);
      }
      if (taskId === "") return;
      try {
        if (state === "reported") await finish(tasks, taskId, delegation, report);
        if (state === "over") await cancel(tasks, taskId);
      } catch (thrown) {
        // TASK_NOT_FOUND means that the ended task was purged, so nothing remains to complete or cancel.
        if (fromConnectError(thrown).reason !== ErrorReason.TASK_NOT_FOUND) throw thrown;
      }
    },
  });
}

interface Found {
  readonly session: Session;
  readonly delegation: SessionObject;
  /** The delegator's principal. */
  readonly principal: string;
  /** The delegate's id in the registry. */
  readonly delegateId: string;
  readonly request: Envelope;
  readonly report: Envelope | undefined;
}

async function read(
  { store }: SessionEngine,
  { sessionId, delegationId }: WorkRow,
): Promise<Found | undefined> {
  return store.read(async (tx) => {
    const session = await readSession(tx, sessionId);
    const delegation = session && objectOf(session, delegationId);
    if (session === undefined || delegation === undefined) return undefined;
    const message = async (ordinal: number) =>
      (await readMessages(tx, sessionId, ordinal - 1, 1))[0]?.envelope;
    const request = await message(delegation.ordinal);
    const { principals, registryIds } = await readParties(tx, sessionId);
    const principal = principals.get(delegation.author);
    const delegateId = registryIds.get(delegation.target ?? "");
    if (request === undefined || principal === undefined || delegateId === undefined) return undefined;
    const { result } = delegation;
    return {
      session,
      delegation,
      principal,
      delegateId,
      request,
      report: result === undefined ? undefined : await message(result.ordinal),
    };
  });
}

/** Creates the task of a delegation. A repeated call creates no second task. */
async function begin(
  tasks: TaskEngine,
  clock: Clock,
  { session, delegation, principal, delegateId, request: message }: Omit<Found, "report">,
  options: { headers: Headers; signal: AbortSignal; timeoutMs: number },
): Promise<string> {
  const { sessionId, expireMs, organization = "" } = session;
  const body = message.content?.body?.kind;
  const { scope = "", context } = body?.case === "delegate" ? body.value : {};
  const authority = DelegationAuthoritySchema.value[delegation.authority ?? DelegationAuthority.ADVISORY];
  const input: JsonObject = {
    sessionId,
    delegationId: delegation.id,
    scope,
    authority: authority?.localName.toLowerCase() ?? "",
    delegator: delegation.author,
    ...(delegation.returnTo === undefined ? {} : { returnTo: delegation.returnTo }),
    ...(context === undefined ? {} : { context }),
  };
  const draftOfWork = create(TaskDraftSchema, {
    agentId: delegateId,
    correlationId: sessionId,
    description: scope,
    input: fromJson(ValueSchema, input),
  });
  // The task must end with the session. A replay is compared without this limit, because the limit depends on the time
  // of the call.
  const limits = create(TaskLimitsSchema, { total: durationFromMs(Math.max(1, expireMs - clock.now())) });
  const draft = { ...draftOfWork, limits };
  const admitted = await tasks.admit({ draft, delegator: principal }, options);
  const creation = {
    draft,
    admitted,
    delegator: principal,
    requestId: `asp_${sha256Hex(`${sessionId}/${delegation.id}`)}`,
    organization,
    viewer: asCaller({ principal, local: false, organization }),
    sameAs: draftOfWork,
  };
  const { taskId } = await tasks.store.write((tx) => tasks.create(tx, creation), { isRepeatable: true });
  return taskId;
}

/**
 * Completes the task with the delegate's report. Cancels the task instead if the task's state does not allow
 * completion, for example while the task waits for an answer.
 */
async function finish(
  tasks: TaskEngine,
  taskId: string,
  delegation: SessionObject,
  report: Envelope | undefined,
): Promise<void> {
  const reportKind = report?.content?.body?.kind;
  const { data, subject = "" } = reportKind?.case === "inform" ? reportKind.value : {};
  const completion = {
    worker: { holder: delegation.id, worker: "asp" },
    output: create(TaskOutputSchema, { full: data ?? NULL, minimal: subject }),
    fromAnyWorker: true,
  };
  await tasks.store.write(async (tx) => {
    if (await tasks.complete(tx, taskId, completion)) return;
    await tasks.cancel(tx, taskId, "the delegate has reported in the session", { ifOpen: true });
  });
}

const NULL: Value = fromJson(ValueSchema, null);

async function cancel(tasks: TaskEngine, taskId: string): Promise<void> {
  await tasks.store.write((tx) =>
    tasks.cancel(tx, taskId, "the delegation has ended without a report", { ifOpen: true }),
  );
}
