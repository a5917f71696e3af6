import { durationFromMs } from "@bufbuild/protobuf/wkt";
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
import { DeputeError, ErrorReason, invalid, newId } from "@depute/core";
import { fromConnectError, reasonOf } from "@depute/service";
import type { Clients } from "../../src/clients.ts";
import { renameFields, withMetadata } from "../../src/fault.ts";
import type { WireCall } from "../../src/wire-call.ts";
import { type Resolved, resolveLevel, tokensUsed } from "./budget.ts";
import { answerContext, capabilityOf, draftedContext } from "./contexts.ts";
import { type Discovery, discover } from "./discover.ts";
import { elapsedMs } from "./events.ts";
import { readJson } from "./json.ts";
import { type NekteState, stateBefore, stateOfTask } from "./states.ts";
import { type Begun, failureOf, firstOf, type Told, tellAll, timeOf } from "./streams.ts";
import { type Verified, verify } from "./verify.ts";

/** What the methods work with. */
export interface NekteContext {
  readonly clients: Clients;
  /** The agent that free work goes to where none is named; empty for none. */
  readonly defaultAgent: string;
  /** Milliseconds that an invocation may take. */
  readonly invokeTimeoutMs: number;
}

/** What came of an invocation: its result, or that the caller knows an outdated version. */
export type Invocation =
  | { readonly kind: "result"; readonly taskId: string; readonly result: Resolved; readonly ms: number }
  | { readonly kind: "outdated"; readonly schema: CapabilityFull };

/**
 * What NEKTE's methods do, on messages; JSON and gRPC share it. `agentId` is the agent that the address names, or empty
 * for all of them.
 */
export class NekteMethods {
  readonly #context: NekteContext;

  constructor(context: NekteContext) {
    this.#context = context;
  }

  /** nekte.discover (NEKTE 1). */
  discover(agentId: string, request: DiscoverRequest, call: WireCall): Promise<Discovery> {
    return discover(this.#context.clients, agentId, request, call);
  }

  /**
   * What an agent says of itself.
   *
   * @throws DeputeError AGENT_NOT_FOUND
   */
  async describe(agentId: string, call: WireCall): Promise<string> {
    const { agent } = await this.#context.clients.agents.getAgent({ id: agentId }, call.aside);
    return agent?.description ?? "";
  }

  /**
   * nekte.invoke (NEKTE 2): a task for the capability, whose end is waited for. A caller that hangs up cancels it.
   *
   * @throws DeputeError CAPABILITY_NOT_FOUND, INPUT_SCHEMA_VIOLATION, BUDGET_EXCEEDED (metadata `task_id`), TASK_TIMEOUT,
   * TASK_FAILED, TASK_ID_TAKEN, ...
   */
  async invoke(agentId: string, request: InvokeRequest, call: WireCall): Promise<Invocation> {
    const { cap, taskId = newId() } = request;
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

  /** Runs a capability, or takes up the run that has this id. */
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
    const asked = { requestId: newId(), draft, cancelOnDisconnect: true };
    let beganMs = 0;
    for await (const { event } of clients.tasks.delegateTask(asked, call.asCaller)) {
      if (event === undefined) continue;
      if (event.sequence === 1n) beganMs = timeOf(event);
      const { payload } = event;
      try {
        if (payload.case === "completed") {
          const { output, usage } = payload.value;
          const result = resolveLevel(output, budget);
          return {
            result: { ...result, tokens: tokensUsed(usage, result.tokens) },
            ms: elapsedMs(event, beganMs),
          };
        }
      } catch (thrown) {
        throw withMetadata(thrown, { task_id: externalId });
      }
      const failure = failureOf(event);
      if (failure !== undefined) throw failure;
    }
    throw new DeputeError(
      ErrorReason.SHUTTING_DOWN,
      "the run goes on: invoke it again under the same task_id",
      {
        metadata: { task_id: externalId },
      },
    );
  }

  /**
   * nekte.delegate (NEKTE 3): work for an agent, free or a capability. The stream that comes back has begun; what goes wrong from then on
   * is an event. Whoever stops reading does not stop the task.
   *
   * @param after the last sequence that the caller has seen
   * @throws DeputeError AGENT_NOT_FOUND, TASK_ID_TAKEN, CONTEXT_PERMISSION_DENIED, ...
   */
  async delegate(
    agentId: string,
    request: DelegateRequest,
    after: bigint,
    call: WireCall,
  ): Promise<AsyncGenerator<Told, void, undefined>> {
    const { task } = request;
    if (task === undefined) throw new Error("a valid request has a task");
    // A capability names its agent itself.
    const delegate = agentId || (task.cap === undefined ? this.#context.defaultAgent : "");
    if (delegate === "" && task.cap === undefined) throw noAgent();
    const { first, events } = await this.#begin(delegate, request, call).catch(async (thrown: unknown) => {
      const known = after > 0n ? await this.#knownTask(delegate, request, thrown, call) : undefined;
      if (known === undefined) throw thrown;
      return firstOf(this.#context.clients.tasks.watchTask({ taskId: known }, call.asCaller));
    });
    const beganMs = first.done === true || first.value.event === undefined ? 0 : timeOf(first.value.event);
    const view = { taskId: task.id, budget: task.budget, beganMs, wentBack: false };
    return tellAll(first, events, view, after, call.signal);
  }

  /** Hands over the work, or attaches to the same that was handed over before. */
  async #begin(agentId: string, request: DelegateRequest, call: WireCall): Promise<Begun> {
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
    return firstOf(clients.tasks.delegateTask({ requestId: newId(), draft }, call.asCaller)).catch(
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
   * The id of the task that a caller takes up again whose context is gone, with its time or its process, and so can be
   * compared no more; undefined where that is not what was refused. Only who has seen an event of it takes it up like that.
   */
  async #knownTask(agentId: string, { task, context }: DelegateRequest, refused: unknown, call: WireCall) {
    const reason = reasonOf(refused);
    if (task === undefined || context === undefined) return undefined;
    if (reason === undefined || !CONTEXT_GONE.has(reason)) return undefined;
    const name = { case: "externalId", value: task.id } as const;
    const asked = this.#context.clients.tasks.getTask({ name, agentId }, call.asCaller);
    // What was refused first is what the caller is told.
    const known = (await asked.catch(() => undefined))?.task;
    const isSame =
      known !== undefined &&
      (agentId === "" || known.agentId === agentId) &&
      known.capabilityId === capabilityOf(task.cap) &&
      known.description === task.desc;
    return isSame ? known.id : undefined;
  }

  /** nekte.context (NEKTE 7). */
  context(agentId: string, request: ContextRequest, call: WireCall): Promise<ContextResponse> {
    return answerContext(this.#context.clients, agentId, request, call);
  }

  /** nekte.verify (NEKTE 8). */
  verify(agentId: string, request: VerifyRequest, call: WireCall): Promise<Verified> {
    return this.#named(agentId, call, (agent) => verify(this.#context.clients, agent, request, call));
  }

  /**
   * nekte.task.cancel (NEKTE 4), of a task that the caller knows by its own id.
   *
   * @throws DeputeError TASK_NOT_CANCELLABLE also for a task that was cancelled before (NEKTE library), TASK_NOT_FOUND
   */
  async cancel(agentId: string, request: TaskCancelRequest, call: WireCall): Promise<Lifecycle> {
    const { taskId, reason = "" } = request;
    const { task, previousStatus, wasCancelled } = await this.#named(agentId, call, (agent) =>
      this.#context.clients.tasks.cancelTask({ externalId: taskId, agentId: agent, reason }, call.asCaller),
    );
    if (task === undefined) throw new Error("a task was cancelled and not told of");
    if (wasCancelled) {
      throw new DeputeError(ErrorReason.TASK_NOT_CANCELLABLE, "the task was cancelled before", {
        metadata: { task: taskId, status: "cancelled" },
      });
    }
    return { taskId, status: stateOfTask(task), previousStatus: stateBefore(previousStatus, task) };
  }

  /**
   * nekte.task.resume (NEKTE 5), of a task that the caller knows by its own id. It is running from then on, as NEKTE has
   * it, also while it waits for a worker.
   */
  async resume(agentId: string, request: TaskResumeRequest, call: WireCall): Promise<Lifecycle> {
    const { taskId, budget } = request;
    const { task, previousStatus } = await this.#named(agentId, call, (agent) =>
      this.#context.clients.tasks.resumeTask(
        { externalId: taskId, agentId: agent, ...(budget === undefined ? {} : { budget }) },
        call.asCaller,
      ),
    );
    if (task === undefined) throw new Error("a task was resumed and not told of");
    return { taskId, status: stateOfTask(task), previousStatus: stateBefore(previousStatus, task) };
  }

  /** nekte.task.status (NEKTE 6), of a task that the caller knows by its own id. */
  async status(agentId: string, { taskId }: TaskStatusRequest, call: WireCall): Promise<Task> {
    const name = { case: "externalId", value: taskId } as const;
    const { task } = await this.#named(agentId, call, (agent) =>
      this.#context.clients.tasks.getTask({ name, agentId: agent }, call.asCaller),
    );
    if (task === undefined) throw new Error("a task was found and not told of");
    return task;
  }

  /**
   * Asks about a task by the caller's own id, which is unique for an agent. Where the address is that of all agents, several may
   * have a task of this id: then that of the default agent is meant.
   *
   * @throws DeputeError INVALID_REQUEST when it is none of the default agent's
   */
  async #named<T>(agentId: string, call: WireCall, ask: (agentId: string) => Promise<T>): Promise<T> {
    try {
      return await ask(agentId);
    } catch (thrown) {
      const { defaultAgent } = this.#context;
      const isAmbiguous = fromConnectError(thrown).violations.some(({ field }) => field === "agent_id");
      if (!isAmbiguous) throw thrown;
      // A holder proof counts for one call.
      if (defaultAgent !== "" && call.asCaller === call.aside) return ask(defaultAgent);
      throw invalid("/task_id", "several agents have a task of this id: post to /nekte/{agent}");
    }
  }
}

/** A task's state after a call that changed it. */
export interface Lifecycle {
  readonly taskId: string;
  readonly status: NekteState;
  readonly previousStatus: NekteState;
}

/** What comes of delegating again with a context that is gone: it cannot be named, or another one is the draft's. */
const CONTEXT_GONE: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.TASK_ID_TAKEN,
  ErrorReason.CONTEXT_NOT_FOUND,
  ErrorReason.CONTEXT_EXPIRED,
]);

function noAgent(): DeputeError {
  return new DeputeError(
    ErrorReason.AGENT_NOT_FOUND,
    "no agent is named: post to /nekte/{agent}, or let DEPUTE_NEKTE_DEFAULT_AGENT name one",
    { metadata: { agent: "" } },
  );
}
