import { create, fromJson, type JsonObject } from "@bufbuild/protobuf";
import { durationFromMs, type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { objectOf, type Session, type SessionObject, workOf } from "@depute/asp";
import { DelegationAuthority, DelegationAuthoritySchema } from "@depute/contracts/asp/v0/common_pb";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import { TaskLimitsSchema, TaskOutputSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { type Clock, ErrorReason, type Timers } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { fromConnectError, type Logger, Outbox, ownHeaders } from "@depute/service";
import { asCaller, type TaskEngine } from "../../core/index.ts";
import type { SessionEngine } from "../engine/engine.ts";
import { readMessages, readParties, readSession } from "../store/session-rows.ts";
import { seenTo, setTask, type WorkRow, worksDue } from "../store/work-rows.ts";

/** How long the registry has for an answer, milliseconds. */
const TIMEOUT_MS = 10_000;

/** Refusals that another try would meet as well: there will be no task, and who watches for one is told that. */
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
}

/**
 * The tasks that delegations of sessions are worked on as. Depute's choice, because the text does not say what the work is:
 * a task of the delegator's begins when the delegation is accepted; the delegate's report in the session is its result,
 * whoever of the delegate's works on it, since the report is what the delegate has signed; and it is cancelled when the
 * delegation ends without a report.
 *
 * The session is the truth: what happened to a delegation is noted in the transaction of the message, and seen to from there.
 */
export function delegatedWork({ engine, tasks, clock, timers, log }: DelegatedWorkOptions): Outbox<WorkRow> {
  const { store } = engine;
  return new Outbox<WorkRow>({
    timers,
    log,
    what: "the task of a delegation cannot be seen to",
    first: (limit) => store.read((tx) => worksDue(tx, limit)),
    drop: (row) => store.write((tx) => seenTo(tx, row)),
    async tell(row, signal) {
      const found = await read(engine, row);
      if (found === undefined) return;
      const { session, delegation, report } = found;
      const state = workOf(session, delegation);
      let { taskId } = row;
      if (taskId === "" && (state === "going" || state === "reported")) {
        const options = { headers: ownHeaders(""), signal, timeoutMs: TIMEOUT_MS };
        try {
          taskId = await begin(tasks, clock, found, options);
        } catch (thrown) {
          const refusal = fromConnectError(thrown);
          if (!FINAL.has(refusal.reason)) throw thrown;
          log.info({ err: refusal, session: session.sessionId }, "a delegation has no task");
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
        // A task that was purged has ended long ago.
        if (fromConnectError(thrown).reason !== ErrorReason.TASK_NOT_FOUND) throw thrown;
      }
    },
  });
}

interface Found {
  readonly session: Session;
  readonly delegation: SessionObject;
  /** The delegator's. */
  readonly principal: string;
  /** The delegate's id in the registry. */
  readonly delegateId: string;
  readonly asked: Envelope;
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
    const asked = await message(delegation.ordinal);
    const { principals, registryIds } = await readParties(tx, sessionId);
    const principal = principals.get(delegation.author);
    const delegateId = registryIds.get(delegation.target ?? "");
    if (asked === undefined || principal === undefined || delegateId === undefined) return undefined;
    const { result } = delegation;
    return {
      session,
      delegation,
      principal,
      delegateId,
      asked,
      report: result === undefined ? undefined : await message(result.ordinal),
    };
  });
}

/** Creates the task, once. */
async function begin(
  tasks: TaskEngine,
  clock: Clock,
  { session, delegation, principal, delegateId, asked: message }: Omit<Found, "report">,
  options: { headers: Headers; signal: AbortSignal; timeoutMs: number },
): Promise<string> {
  const { sessionId, expireMs } = session;
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
  const asked = create(TaskDraftSchema, {
    agentId: delegateId,
    correlationId: sessionId,
    description: scope,
    input: fromJson(ValueSchema, input),
  });
  // Nothing is waited for once the session is over. When this is tried is no part of what is asked for.
  const limits = create(TaskLimitsSchema, { total: durationFromMs(Math.max(1, expireMs - clock.now())) });
  const draft = { ...asked, limits };
  const admitted = await tasks.admit({ draft, delegator: principal }, options);
  const creation = {
    draft,
    admitted,
    delegator: principal,
    requestId: `asp_${sha256Hex(`${sessionId}/${delegation.id}`)}`,
    viewer: asCaller({ principal, local: false }),
    sameAs: asked,
  };
  const { taskId } = await tasks.store.write((tx) => tasks.create(tx, creation), { isRepeatable: true });
  return taskId;
}

/** Ends the task with the report. Work that waits for an answer, a review or a resumption is cancelled. */
async function finish(
  tasks: TaskEngine,
  taskId: string,
  delegation: SessionObject,
  report: Envelope | undefined,
): Promise<void> {
  const said = report?.content?.body?.kind;
  const { data, subject = "" } = said?.case === "inform" ? said.value : {};
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
