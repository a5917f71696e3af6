import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { durationFromMs, type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type {
  CapabilityFull,
  ContextRequest,
  ContextResponse,
  DelegateRequest,
  DiscoverRequest,
  InvokeRequest,
  TaskCancelRequest,
  TaskResumeRequest,
  TaskStatusRequest,
  VerifyRequest,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, invalid, randomUuid } from "@depute/core";
import { fromConnectError, reasonOf } from "@depute/service";
import { parseJson, refusalOf } from "@depute/wire";
import type { Clients } from "../../edge/clients.ts";
import { renameFields, withMetadata } from "../../edge/fault.ts";
import { firstOf, leavable, type StartedStream } from "../../edge/started-stream.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { type Resolved, resolveLevel, tokensUsed } from "./budget.ts";
import { answerContext, capabilityOf, draftedContext } from "./contexts.ts";
import { type Discovery, discover } from "./discover.ts";
import { delegateEvents, elapsedMs, failureOf, type SequencedEvent, timeOf } from "./events.ts";
import { type NekteState, stateBefore, stateOfTask } from "./states.ts";
import { type Verified, verify } from "./verify.ts";

/** The dependencies of the methods. */
export interface NekteContext {
  readonly clients: Clients;
  /** The agent that gets a task if the request names no agent. If empty, the gateway refuses such requests. */
  readonly defaultAgent: string;
  /** Maximum duration of an invocation in milliseconds. */
  readonly invokeTimeoutMs: number;
}

/** The result of an invocation, or the current schema if the request states an outdated version. */
export type Invocation =
  | { readonly kind: "result"; readonly taskId: string; readonly result: Resolved; readonly ms: number }
  | { readonly kind: "outdated"; readonly schema: CapabilityFull };

/**
 * Implements NEKTE's methods on decoded messages, for JSON and gRPC. `agentId` is the agent in the address; empty if
 * the address is that of all agents.
 */
export class NekteMethods {
  readonly #context: NekteContext;

  constructor(context: NekteContext) {
    this.#context = context;
  }

  /** nekte.discover (NEKTE 1): lists capabilities. */
  discover(agentId: string, request: DiscoverRequest, call: WireCall): Promise<Discovery> {
    return discover(this.#context.clients, agentId, request, call);
  }

  /**
   * Returns the agent's description of itself.
   *
   * @throws DeputeError AGENT_NOT_FOUND
   */
  async describe(agentId: string, call: WireCall): Promise<string> {
    const { agent } = await this.#context.clients.agents.getAgent({ agentId }, call.aside);
    return agent?.description ?? "";
  }

  /**
   * nekte.invoke (NEKTE 2): creates a task for the capability and waits for its end. If the caller disconnects, the
   * task is cancelled.
   *
   * @throws DeputeError BUDGET_EXCEEDED (metadata `task_id`), SHUTTING_DOWN; the errors of readJson, failureOf and
   * TaskService.DelegateTask
   */
  async invoke(agentId: string, request: InvokeRequest, call: WireCall): Promise<Invocation> {
    const { cap, taskId = randomUuid() } = request;
    try {
      return { kind: "result", taskId, ...(await this.#run(agentId, request, taskId, call)) };
    } catch (thrown) {
      if (reasonOf(thrown) !== ErrorReason.VERSION_MISMATCH) {
        throw renameFields(thrown, {
          "draft.input": "/in",
          "draft.capability_id": "/cap",
          "draft.external_id": "/task_id",
        });
      }
      const { capability } = await this.#context.clients.discovery.resolveCapability(
        { capabilityId: cap, agentId, hash: "" },
        call.aside,
      );
      if (capability === undefined) throw thrown;
      return { kind: "outdated", schema: capability };
    }
  }

  /** Runs a capability. If the caller has already started a run with the same id, waits for that run. */
  async #run(
    agentId: string,
    { cap, h, input, budget }: InvokeRequest,
    externalId: string,
    call: WireCall,
  ): Promise<{ result: Resolved; ms: number }> {
    const { clients, invokeTimeoutMs } = this.#context;
    const draft = {
      externalId,
      agentId,
      capabilityId: cap,
      capabilityHash: h ?? "",
      input: readJson(input, "/in"),
      limits: { total: durationFromMs(invokeTimeoutMs) },
      ...(budget === undefined ? {} : { budget }),
    };
    const asked = { requestId: randomUuid(), draft, cancelOnDisconnect: true };
    let beganMs = 0;
    let result: { result: Resolved; ms: number } | undefined;
    const events = leavable((options) => clients.tasks.delegateTask(asked, options), call.asCaller);
    // Reads the stream to its end. Otherwise the metrics would count the call as cancelled.
    for await (const { taskEvent: event } of events) {
      if (event === undefined) continue;
      if (event.sequence === 1n) beganMs = timeOf(event);
      const { payload } = event;
      try {
        if (payload.case === "completed") {
          const { output, usage } = payload.value;
          const resolved = resolveLevel(output, budget);
          const tokens = tokensUsed(usage, resolved.tokens);
          result = { result: { ...resolved, tokens }, ms: elapsedMs(event, beganMs) };
        }
      } catch (thrown) {
        throw withMetadata(thrown, { task_id: externalId });
      }
      const failure = failureOf(event);
      if (failure !== undefined) throw failure;
    }
    if (result !== undefined) return result;
    throw new DeputeError(
      ErrorReason.SHUTTING_DOWN,
      "the run continues: invoke it again under the same task_id",
      {
        metadata: { task_id: externalId },
      },
    );
  }

  /**
   * nekte.delegate (NEKTE 3): creates a task for an agent, with or without a capability. The stream has begun when this
   * method returns, so the stream reports later faults as events. If the client disconnects, the task continues.
   *
   * @param after the sequence of the last event that the caller has received
   * @param show converts an event to the form that the caller gets
   * @throws DeputeError AGENT_NOT_FOUND if no agent is named; the errors of draftedContext and TaskService.DelegateTask
   */
  async delegate<Shown>(
    agentId: string,
    request: DelegateRequest,
    after: bigint,
    call: WireCall,
    show: (converted: SequencedEvent) => Shown,
  ): Promise<AsyncGenerator<Shown, void, undefined>> {
    const { task } = request;
    if (task === undefined) throw new Error("a valid request has a task");
    // A capability's id determines its agent. So the default agent is used only for work without a capability.
    const delegate = agentId || (task.cap === undefined ? this.#context.defaultAgent : "");
    if (delegate === "" && task.cap === undefined) throw noAgent();
    const { first, events } = await this.#begin(delegate, request, call).catch(async (thrown: unknown) => {
      const knownTask = after > 0n ? await this.#knownTask(delegate, request, thrown, call) : undefined;
      if (knownTask === undefined) throw thrown;
      return firstOf(this.#context.clients.tasks.watchTask({ taskId: knownTask }, call.asCaller));
    });
    const beganMs =
      first.done === true || first.value.taskEvent === undefined ? 0 : timeOf(first.value.taskEvent);
    const view = { taskId: task.id, budget: task.budget, beganMs, wasRequeued: false };
    return delegateEvents(first, events, view, after, call.signal, show);
  }

  /** Creates the task. If an earlier request with the same content has already created it, continues with that task. */
  async #begin(agentId: string, request: DelegateRequest, call: WireCall): Promise<StartedStream> {
    const { clients } = this.#context;
    const { task } = request;
    const {
      id: externalId = "",
      desc: description = "",
      timeoutMs = 0,
      budget,
      cap,
      h,
      contractId,
    } = task ?? {};
    const draft = {
      externalId,
      agentId,
      capabilityId: cap ?? "",
      capabilityHash: h ?? "",
      description,
      contractId: contractId ?? "",
      limits: { total: durationFromMs(timeoutMs) },
      ...(budget === undefined ? {} : { budget }),
      ...(await draftedContext(clients, request, call)),
    };
    return firstOf(clients.tasks.delegateTask({ requestId: randomUuid(), draft }, call.asCaller)).catch(
      (thrown: unknown) => {
        throw renameFields(thrown, {
          "draft.input": "/context/data",
          "draft.context_ids": "/context",
          "draft.contexts[0]": "/context",
          envelope: "/context",
          "draft.external_id": "/task/id",
          "draft.capability_id": "/task/cap",
          "draft.capability_hash": "/task/h",
          "draft.contract_id": "/task/contract_id",
          "draft.description": "/task/desc",
          "draft.limits.total": "/task/timeout_ms",
        });
      },
    );
  }

  /**
   * Returns the id of the task that an earlier request created, if the task's context no longer exists. The caller can
   * then still resume the task's stream. Without the context, the service cannot compare all of this request with the
   * earlier one. So this method compares the agent, the capability and the description. Returns undefined if they
   * differ, or if the service refused for another reason. Used only if the caller has already received an event.
   */
  async #knownTask(agentId: string, { task, context }: DelegateRequest, refused: unknown, call: WireCall) {
    const reason = reasonOf(refused);
    if (task === undefined || context === undefined) return undefined;
    if (reason === undefined || !CONTEXT_GONE.has(reason)) return undefined;
    const pendingTask = this.#context.clients.tasks.getTask({ externalId: task.id, agentId }, call.asCaller);
    // If this call also fails, the caller gets the refusal of the first call.
    const known = (await pendingTask.catch(() => undefined))?.task;
    const isSame =
      known !== undefined &&
      (agentId === "" || known.agentId === agentId) &&
      known.capabilityId === capabilityOf(task.cap) &&
      known.description === task.desc;
    return isSame ? known.id : undefined;
  }

  /** nekte.context (NEKTE 7): shares, reads or revokes a context. */
  context(agentId: string, request: ContextRequest, call: WireCall): Promise<ContextResponse> {
    return answerContext(this.#context.clients, agentId, request, call);
  }

  /** nekte.verify (NEKTE 8): checks the result of a task. */
  verify(agentId: string, request: VerifyRequest, call: WireCall): Promise<Verified> {
    return this.#byTaskId(agentId, call, (agent) => verify(this.#context.clients, agent, request, call));
  }

  /**
   * nekte.task.cancel (NEKTE 4): cancels a task. The caller names the task by the caller's own id.
   *
   * @throws DeputeError TASK_NOT_FOUND; INVALID_REQUEST if the id is ambiguous; TASK_NOT_CANCELLABLE if the task has
   * ended, even if it is already cancelled (NEKTE library)
   */
  async cancel(agentId: string, request: TaskCancelRequest, call: WireCall): Promise<Lifecycle> {
    const { taskId, reason = "" } = request;
    const { task, previousStatus, wasCancelled } = await this.#byTaskId(agentId, call, (agent) =>
      this.#context.clients.tasks.cancelTask({ externalId: taskId, agentId: agent, reason }, call.asCaller),
    );
    if (task === undefined) throw new Error("CancelTask answered without a task");
    if (wasCancelled) {
      throw new DeputeError(ErrorReason.TASK_NOT_CANCELLABLE, "the task is already cancelled", {
        metadata: { task: taskId, status: "cancelled" },
      });
    }
    return { taskId, status: stateOfTask(task), previousStatus: stateBefore(previousStatus, task) };
  }

  /**
   * nekte.task.resume (NEKTE 5): resumes a task. The caller names the task by the caller's own id. As NEKTE requires,
   * the state of a resumed task is `running`, even while the task waits for a worker.
   */
  async resume(agentId: string, request: TaskResumeRequest, call: WireCall): Promise<Lifecycle> {
    const { taskId, budget } = request;
    const { task, previousStatus } = await this.#byTaskId(agentId, call, (agent) =>
      this.#context.clients.tasks.resumeTask(
        { externalId: taskId, agentId: agent, ...(budget === undefined ? {} : { budget }) },
        call.asCaller,
      ),
    );
    if (task === undefined) throw new Error("ResumeTask answered without a task");
    return { taskId, status: stateOfTask(task), previousStatus: stateBefore(previousStatus, task) };
  }

  /** nekte.task.status (NEKTE 6): reads a task. The caller names the task by the caller's own id. */
  async status(agentId: string, { taskId }: TaskStatusRequest, call: WireCall): Promise<Task> {
    const { task } = await this.#byTaskId(agentId, call, (agent) =>
      this.#context.clients.tasks.getTask({ externalId: taskId, agentId: agent }, call.asCaller),
    );
    if (task === undefined) throw new Error("GetTask answered without a task");
    return task;
  }

  /**
   * Makes a call about a task that the caller names by the caller's own id. This id is unique only for one agent. At
   * the address of all agents, the id may be ambiguous. The method then repeats the call for the default agent.
   *
   * @throws DeputeError INVALID_REQUEST if the id is ambiguous and the call cannot be repeated for a default agent
   */
  async #byTaskId<T>(agentId: string, call: WireCall, ask: (agentId: string) => Promise<T>): Promise<T> {
    try {
      return await ask(agentId);
    } catch (thrown) {
      const { defaultAgent } = this.#context;
      const isAmbiguous = fromConnectError(thrown).violations.some(({ field }) => field === "agent_id");
      if (!isAmbiguous) throw thrown;
      // With a holder proof, a second call is impossible, because the proof is valid for only one call.
      if (defaultAgent !== "" && call.asCaller === call.aside) return ask(defaultAgent);
      throw invalid("/task_id", "several agents have a task with this id: post to /nekte/{agent}");
    }
  }
}

/** The state of a task after a call has changed it. */
export interface Lifecycle {
  readonly taskId: string;
  readonly status: NekteState;
  readonly previousStatus: NekteState;
}

/**
 * The error reasons with which the service refuses a repeated delegation whose context has ended. The service does not
 * find the context, or the draft differs from the first one.
 */
const CONTEXT_GONE: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.TASK_ID_TAKEN,
  ErrorReason.CONTEXT_NOT_FOUND,
  ErrorReason.CONTEXT_EXPIRED,
]);

function noAgent(): DeputeError {
  return new DeputeError(
    ErrorReason.AGENT_NOT_FOUND,
    "the address names no agent: post to /nekte/{agent}, or set DEPUTE_NEKTE_DEFAULT_AGENT",
    { metadata: { agent: "" } },
  );
}

/**
 * Parses the JSON in a `bytes` field. A gRPC client may send arbitrary bytes in it.
 *
 * @throws DeputeError MALFORMED_JSON, LIMIT_EXCEEDED
 */
export function readJson(bytes: Uint8Array, path: string): Value {
  const parsed = parseJson(bytes, { maxBytes: Number.POSITIVE_INFINITY });
  if (!parsed.ok) throw refusalOf({ ...parsed.error, path: `${path}${parsed.error.path}` });
  return fromJson(ValueSchema, parsed.value as JsonValue);
}
