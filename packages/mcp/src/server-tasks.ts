import { type Clock, isObject } from "@depute/core";
import { admitAnswered } from "./admit-answered.ts";
import { callOwner } from "./ask-bridge.ts";
import type { Authoriser } from "./authoriser.ts";
import { type DecisionReport, decided, denialsOf } from "./call-decision.ts";
import type { CallLimiter } from "./call-limiter.ts";
import {
  type Admitted,
  admitRights,
  type GateOptions,
  lacksRight,
  notBound,
  type ProvenHolder,
} from "./gate.ts";
import { HELD_MS } from "./held-call.ts";
import { KnownTasks } from "./known-tasks.ts";
import type { ListenRequest } from "./listen-request.ts";
import { followTasks, type ListenedTask, NO_TASKS } from "./listened-tasks.ts";
import { type ObservedEnd, type ObservedTaskRequest, observed } from "./observed-call.ts";
import type { Presentation } from "./presentation.ts";
import { callerOf, type ProxyRequest } from "./proxy-request.ts";
import { fulfil } from "./rounds.ts";
import { taskLimits } from "./rules/call-limits.ts";
import type { Declared } from "./rules/client-capabilities.ts";
import { LISTEN } from "./rules/methods.ts";
import type { UpstreamConfig } from "./rules/read-config.ts";
import { denialOf, INVALID_PARAMS, METHOD_NOT_FOUND, Refusal, unmapped } from "./rules/refusal.ts";
import {
  CHANGING_TASK_METHODS,
  createdTaskId,
  declaresTasks,
  relatedTaskId,
  relatedTo,
  shownTaskCapabilities,
  TASK_METHODS,
  withTaskId,
} from "./rules/server-task.ts";
import type { Era } from "./rules/task-form.ts";
import {
  assertDeclared,
  malformed,
  needsTaskDeclaration,
  onlyTasks,
  renamedFault,
  unknownTask,
} from "./task-errors.ts";
import { type Seal, type TaskHandle, TaskHandles } from "./task-handles.ts";
import type { FollowedTasks } from "./task-streams.ts";
import type { Upstream } from "./upstream.ts";
import { UpstreamError } from "./upstream-fault.ts";
import { SHARED_CONNECTION } from "./upstream-options.ts";

type Result = Record<string, unknown>;

export interface ServerTasksOptions {
  readonly config: UpstreamConfig;
  readonly upstream: Upstream;
  readonly authoriser: Authoriser;
  readonly gate: GateOptions;
  readonly limiter: CallLimiter;
  readonly seal: Seal;
  readonly clock: Clock;
  /** Receives the decisions on answers and cancellations, and all denials. */
  readonly onDecision?: DecisionReport;
  readonly onTaskRequest?: (request: ObservedTaskRequest) => void;
  readonly onFault: (subject: string, thrown: unknown) => void;
}

/** The token of a request; undefined if the request has none. */
interface Authority {
  readonly presentation: Presentation | undefined;
}

/** A call that may become a task. */
export interface TaskCall {
  readonly era: Era;
  readonly facts: Omit<TaskHandle, "taskId">;
}

/**
 * The tasks of one server, for clients of the same era as the server. The client's id of a task differs from the
 * server's id. Each request on a task needs the capabilities of the call that began the task.
 */
export class ServerTasks {
  readonly #options: ServerTasksOptions;
  readonly #handles: TaskHandles;
  readonly #known = new KnownTasks();

  constructor(options: ServerTasksOptions) {
    this.#options = options;
    this.#handles = new TaskHandles(options.seal, options.config.name);
  }

  /** Returns the era of the request's client if the server offers tasks to this client; otherwise undefined. */
  async eraOf({ era }: Pick<ProxyRequest, "era">): Promise<Era | undefined> {
    // Server processes of single MCP sessions may use the same task id, so such a server offers no tasks.
    if (era === undefined || this.#options.upstream.isPerSession) return undefined;
    const { capabilities, era: own } = await this.#options.upstream.description();
    return own === era && shownTaskCapabilities(era, capabilities) !== undefined ? era : undefined;
  }

  /**
   * Decides whether a call of a tool may become a task. In revision 2026-07-28, a client declares support in the call;
   * in earlier revisions, it requests a task with `task`.
   *
   * @throws Refusal if a client of an earlier revision requests a task, and the call's resources are too long for the
   * task's id; UpstreamError
   */
  async ofCall(
    request: ProxyRequest,
    params: Readonly<Record<string, unknown>>,
    { rights, principal = "" }: Admitted,
    tool: string,
  ): Promise<TaskCall | undefined> {
    const era = await this.eraOf(request);
    const isWanted = era === "modern" ? declaresTasks(request.clientCapabilities) : isObject(params.task);
    if (era === undefined || !isWanted) return undefined;
    const connection = this.#options.upstream.connectionOf(request.clientCapabilities);
    const facts = { tool, rights, caller: [principal, request.login ?? ""] as const, connection };
    if (this.#handles.fits(facts)) return { era, facts };
    if (era === "modern") return undefined;
    const detail = "task: the call's resources are too long for a task; call the tool without task";
    throw new Refusal(INVALID_PARAMS, "Invalid params", { reason: "INVALID_REQUEST", detail });
  }

  /**
   * Converts the error of a call for its caller. The proxy's own error replaces the server's if the tool runs only as a
   * task and the client's era differs from the server's.
   */
  explained(thrown: unknown, request: ProxyRequest): unknown {
    const fault = thrown instanceof UpstreamError ? thrown.fault : undefined;
    if (fault?.kind !== "error" || !needsTaskDeclaration(fault.code, fault.data)) return thrown;
    return request.era === "modern" ? thrown : onlyTasks();
  }

  /**
   * Refuses the call of a tool that runs only as a task, if the caller cannot have tasks.
   *
   * @throws Refusal; UpstreamError
   */
  async assertCallable(request: ProxyRequest, isTaskOnly: boolean): Promise<void> {
    if (isTaskOnly && (await this.eraOf(request)) === undefined) throw onlyTasks();
  }

  /**
   * Returns the server's response to a call. If the response is a task, replaces its id by the id for the client.
   *
   * @param call undefined if the response must not be a task
   * @throws UpstreamError for a task if `call` is undefined, and for a task without a usable id
   */
  handedOut(
    result: Result,
    request: ProxyRequest,
    presentation: Presentation | undefined,
    call: TaskCall | undefined,
  ): Result {
    if (call === undefined) {
      if (result.resultType !== "task") return result;
      throw malformed("the server returned a task that the client did not request");
    }
    const { era, facts } = call;
    const taskId = createdTaskId(era, result);
    if (taskId === undefined && result.resultType !== "task") return result;
    const id = this.#handles.seal(facts, taskId);
    if (id === undefined) throw malformed("the server's task id must be a text of 1 to 512 characters");
    const { notifyTask } = request;
    this.#known.add(facts.connection, String(taskId), {
      id,
      owner: ownerOf(request, facts.caller),
      rights: facts.rights,
      presentation,
      ...(notifyTask !== undefined && { notify: notifyTask }),
    });
    return withTaskId(request.method, result, id);
  }

  /**
   * Handles a request with a method on tasks.
   *
   * @throws Refusal; UpstreamError; DeputeError if the authoriser is unavailable
   */
  async answer(
    request: ProxyRequest,
    params: Readonly<Record<string, unknown>>,
    presentation: Presentation | undefined,
  ): Promise<Result> {
    const { method } = request;
    const { clock, onTaskRequest = () => {} } = this.#options;
    let tool = "";
    const report = (end: ObservedEnd) => onTaskRequest({ method, tool, ...end });
    return observed({ clock, report }, async () => {
      await this.#assertServed(request);
      const { caller, handle } = await this.#decide(request, params, presentation, (name) => {
        tool = name;
      });
      const run = () =>
        handle === undefined
          ? this.#list(request, params, presentation, caller)
          : this.#forward(handle, request, params, presentation);
      return this.#counted(request, caller, handle === undefined ? [] : [handle.tool], run);
    });
  }

  /** Throws Refusal for a method that the request's era does not have, and for an undeclared extension for tasks. */
  async #assertServed(request: ProxyRequest): Promise<void> {
    const era = await this.eraOf(request);
    if (era === undefined || !TASK_METHODS[era].includes(request.method))
      throw new Refusal(METHOD_NOT_FOUND, "Method not found", { reason: "UNKNOWN_METHOD" });
    if (era === "modern") assertDeclared(request.clientCapabilities);
  }

  /**
   * Decides on a request's authority. Reports the decision; for a request that changes nothing, only a denial.
   *
   * @param onTool called before the decision, with the tool of the request's task
   * @returns the caller and the request's task; for a list of tasks, only the caller
   * @throws Refusal; DeputeError if the authoriser is unavailable
   */
  #decide(
    request: ProxyRequest,
    params: Readonly<Record<string, unknown>>,
    presentation: Presentation | undefined,
    onTool: (tool: string) => void,
  ): Promise<{ caller: TaskHandle["caller"]; handle?: TaskHandle }> {
    const { method } = request;
    const { onDecision = () => {} } = this.#options;
    const report = CHANGING_TASK_METHODS.includes(method) ? onDecision : denialsOf(onDecision);
    return decided({ method }, report, async (facts) => {
      const caller = await this.#callerOf(request, presentation);
      if (method === "tasks/list") return { caller };
      const handle = this.#handles.open(params.taskId, caller);
      if (handle === undefined) throw unknownTask();
      facts.name = handle.tool;
      onTool(handle.tool);
      Object.assign(facts, await this.#admit(handle, method, params, presentation));
      return { caller, handle };
    });
  }

  /**
   * Returns the tasks of the caller to which a request of revision 2026-07-28 listens. Ids of other callers' tasks, and
   * all ids at a server without tasks, are left out.
   *
   * @throws Refusal if the request does not declare the extension, or the token is denied; UpstreamError; DeputeError
   * if the authoriser is unavailable
   */
  async listened(
    taskIds: readonly string[],
    { login, declared, presentation }: Pick<ListenRequest, "login" | "declared"> & Authority,
  ): Promise<readonly ListenedTask[]> {
    if (taskIds.length === 0) return [];
    assertDeclared(declared);
    if ((await this.eraOf({ era: "modern" })) === undefined) return [];
    const caller = await this.#callerOf({ login }, presentation);
    return taskIds.flatMap((id) => {
      const handle = this.#handles.open(id, caller);
      return handle === undefined ? [] : [{ id, handle }];
    });
  }

  /**
   * Follows tasks. `admitRights` must have admitted the request for the capabilities of the tasks.
   *
   * @param principal the holder of the token; undefined without a token
   * @throws Refusal for a tool that the map or the manifest of the caller's agent does not name, and at a limit;
   * UpstreamError; DeputeError if the authoriser is unavailable
   */
  async follow(
    tasks: readonly ListenedTask[],
    {
      presentation,
      declared,
      principal,
    }: Pick<ListenRequest, "declared"> & Authority & { principal?: string | undefined },
  ): Promise<FollowedTasks<Result>> {
    for (const { handle } of tasks) await this.#assertUsable(handle, principal);
    const [first] = tasks;
    if (first === undefined) return NO_TASKS;
    const tools = tasks.map(({ handle }) => handle.tool);
    const request = { method: LISTEN, params: {} };
    return this.#counted(request, first.handle.caller, tools, () =>
      followTasks(tasks, {
        ...this.#options,
        presentation,
        declared,
        isGranted: (rights) => this.#isGranted(rights, presentation),
      }),
    );
  }

  /** Returns the parameters of a server's request to its only client, with the client's id of the task. */
  relatedAsk(params: Result): Result {
    const known = this.#known.get(SHARED_CONNECTION, relatedTaskId(params));
    return known === undefined ? params : { ...relatedTo(params, known.id) };
  }

  /** Notifies a task's client that the state of the task at the server has changed. */
  async changed(task: Readonly<Record<string, unknown>>, connection: string): Promise<void> {
    const known = this.#known.get(connection, task.taskId);
    if (known?.notify === undefined) return;
    try {
      if (await this.#isGranted(known.rights, known.presentation))
        known.notify(withTaskId("tasks/get", task, known.id));
    } catch (thrown) {
      this.#options.onFault("cannot notify the client of a task's state", thrown);
    }
  }

  /**
   * Returns the holder of a request's token, and the principal of its login. Does not check the token's proof:
   * `admitRights` checks it together with the capabilities of the task. Throws Refusal if the token is denied.
   */
  async #callerOf(
    { login = "" }: Pick<ProxyRequest, "login">,
    presentation: Presentation | undefined,
  ): Promise<TaskHandle["caller"]> {
    if (presentation === undefined) return ["", login];
    const grants = await this.#options.authoriser.grants(presentation.token);
    if (!grants.ok) throw denialOf(grants.denial);
    return [grants.holder, login];
  }

  /** Admits a request on a task. Returns the holder of the token; undefined without a token. Throws Refusal. */
  async #admit(
    handle: TaskHandle,
    method: string,
    params: Readonly<Record<string, unknown>>,
    presentation: Presentation | undefined,
  ): Promise<ProvenHolder | undefined> {
    const { gate, config } = this.#options;
    if (!config.map.tools.has(handle.tool)) throw unmapped(handle.tool);
    const { _meta, ...proved } = params;
    const needed = { rights: handle.rights, proved, name: `${handle.tool}/${method}` };
    const holder = await admitRights(gate, needed, presentation);
    await this.#assertUsable(handle, holder?.principal);
    return holder;
  }

  /** Refuses a task of a tool that the map, or the manifest of the caller's agent, does not name. Throws Refusal. */
  async #assertUsable({ tool, rights: [right] }: TaskHandle, principal: string | undefined): Promise<void> {
    const { config, authoriser } = this.#options;
    if (!config.map.tools.has(tool)) throw unmapped(tool);
    if (principal === undefined || right === undefined) return;
    if (!(await authoriser.mayUse(principal, config.serverId, tool))) throw notBound(right);
  }

  async #forward(
    handle: TaskHandle,
    request: ProxyRequest,
    params: Readonly<Record<string, unknown>>,
    presentation: Presentation | undefined,
  ): Promise<Result> {
    const { upstream, gate, config } = this.#options;
    const { method, client, clientCapabilities, era } = request;
    const id = String(params.taskId);
    const options = {
      ...request,
      takesTasks: true,
      // `tasks/result` waits for the end of the task.
      ...(method === "tasks/result" && { timeoutMs: HELD_MS }),
      ...(era === "legacy" && { clientCapabilities: JSON.parse(handle.connection) as Declared }),
    };
    const send = async (answers: Result) => {
      const sent = { ...params, taskId: handle.taskId, ...answers };
      const owner = () => callOwner(callerOf(request, presentation), method, sent);
      try {
        return withTaskId(method, await upstream.call(method, sent, options, owner), id);
      } catch (thrown) {
        throw renamedFault(thrown, handle.taskId, id);
      }
    };
    const admitAsks = (result: Result, declared: Declared | undefined) =>
      admitAnswered(
        { resultType: "input_required", inputRequests: result.inputRequests },
        { gate, map: config.map, presentation, declared },
      );
    const first = await send({});
    if (client !== undefined) {
      return fulfil(first, {
        client,
        admit: (asking) => admitAsks(asking, undefined),
        again: send,
        abandon: (open) => upstream.abandon(open),
      });
    }
    await admitAsks(first, clientCapabilities);
    return first;
  }

  /** Counts a running request on tasks against the limits of the server and of the tasks' tools. Throws Refusal. */
  async #counted<T>(
    { method, params }: Pick<ProxyRequest, "method" | "params">,
    [holder]: TaskHandle["caller"],
    tools: readonly string[],
    run: () => Promise<T>,
  ): Promise<T> {
    const { config, limiter } = this.#options;
    const ofTools = [...new Set(tools)].map(
      (name) =>
        ({ kind: "tool_tasks", name, limits: taskLimits(config.map.tools.get(name)?.limits ?? {}) }) as const,
    );
    const { concurrentCalls, ...rates } = config.limits;
    // A client can always cancel, even while its other requests wait.
    const limits = method === "tasks/cancel" || concurrentCalls === undefined ? rates : config.limits;
    const counted = limiter.begin([...ofTools, { kind: "server", name: "", limits }], holder, () =>
      Buffer.byteLength(JSON.stringify(params.inputResponses ?? {})),
    );
    try {
      return await run();
    } finally {
      counted.end();
    }
  }

  /** Lists only the caller's own tasks, because clients share the server. */
  async #list(
    request: ProxyRequest,
    params: Readonly<Record<string, unknown>>,
    presentation: Presentation | undefined,
    caller: TaskHandle["caller"],
  ): Promise<Result> {
    const { upstream } = this.#options;
    const owner = ownerOf(request, caller);
    const connection = upstream.connectionOf(request.clientCapabilities);
    const result = await upstream.call("tasks/list", { ...params }, request, () => owner);
    const tasks: Result[] = [];
    for (const task of Array.isArray(result.tasks) ? (result.tasks as unknown[]) : []) {
      const known = isObject(task) ? this.#known.get(connection, task.taskId) : undefined;
      if (known?.owner !== owner || !(await this.#isGranted(known.rights, presentation))) continue;
      tasks.push(withTaskId("tasks/get", task as Result, known.id));
    }
    return { ...result, tasks };
  }

  async #isGranted(rights: TaskHandle["rights"], presentation: Presentation | undefined): Promise<boolean> {
    const { authoriser, config } = this.#options;
    if (presentation === undefined) return !config.requireToken;
    const grants = await authoriser.grants(presentation.token);
    return grants.ok && lacksRight(grants.capabilities, rights) === undefined;
  }
}

/**
 * Returns the caller in whose list a task appears. For callers without a principal, the MCP session distinguishes
 * them.
 */
function ownerOf({ session = "" }: ProxyRequest, caller: TaskHandle["caller"]): string {
  return JSON.stringify(caller.every((principal) => principal === "") ? ["session", session] : caller);
}
