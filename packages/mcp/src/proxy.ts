import { DeputeError, ErrorReason, randomUuid, reasonName } from "@depute/core";
import { admitAnswered } from "./admit-answered.ts";
import { type AdmittedListen, admitListen } from "./admit-listen.ts";
import type { AdmittedCall } from "./admitted-call.ts";
import { argumentViolations } from "./argument-violations.ts";
import { callOwner, UnknownState } from "./ask-bridge.ts";
import { decided, denialsOf } from "./call-decision.ts";
import { callHeaders } from "./call-headers.ts";
import { CallLimiter } from "./call-limiter.ts";
import {
  type Admitted,
  admit,
  admitWish,
  type GateOptions,
  notBound,
  otherDefinition,
  overBudget,
} from "./gate.ts";
import { Listed } from "./listed.ts";
import type { ListenRequest } from "./listen-request.ts";
import { type ObservedEnd, observed } from "./observed-call.ts";
import { fromMember, type Presentation } from "./presentation.ts";
import { withPrivateCache } from "./private-cache.ts";
import type { ProxyOptions } from "./proxy-options.ts";
import { callerOf, type ProxyRequest } from "./proxy-request.ts";
import { realPath } from "./real-path.ts";
import { fulfil } from "./rounds.ts";
import type { Declared } from "./rules/client-capabilities.ts";
import { definitionFault, PINNED, type Used, usedBy } from "./rules/definition.ts";
import { invalidArguments } from "./rules/invalid-arguments.ts";
import { gatedRequestOf, LISTEN, type List, SUBSCRIBE, TOOLS_CALL, treatmentOf } from "./rules/methods.ts";
import { type BudgetState, INTERNAL_ERROR, METHOD_NOT_FOUND, Refusal } from "./rules/refusal.ts";
import { strip } from "./rules/strip.ts";
import { visible } from "./rules/visible.ts";
import { RunningCount } from "./running-count.ts";
import { ServerTasks } from "./server-tasks.ts";
import { type CallReservation, NOTHING, settle } from "./settle.ts";
import { SharedReservations } from "./shared-reservations.ts";
import { subscribe } from "./subscribe.ts";
import { toldOf } from "./told-fault.ts";
import type { Upstream } from "./upstream.ts";
import { UpstreamError } from "./upstream-fault.ts";

/**
 * Proxies one MCP server, and forwards only requests that their tokens allow (DelegateOS 11). Apart from limits, tasks
 * and the definitions that each caller has listed, requests share no state.
 */
export class McpProxy {
  readonly #options: ProxyOptions;
  readonly #gate: GateOptions;
  readonly #listed: Listed;
  readonly #limiter: CallLimiter;
  readonly #tasks: ServerTasks;
  readonly #reservations: SharedReservations;
  /** Settlements in progress, for which close() waits. */
  readonly #open = new Set<Promise<unknown>>();
  /** Requests in progress, for which idle() waits. */
  readonly #running = new RunningCount();

  constructor(options: ProxyOptions) {
    this.#options = options;
    const { authoriser, config, clock, timers } = options;
    this.#gate = { authoriser, requireToken: config.requireToken, realPath };
    this.#listed = new Listed(clock);
    this.#limiter = new CallLimiter(clock);
    this.#reservations = new SharedReservations({
      ...{ spender: authoriser, maxCalls: config.callsPerReservation, clock, timers },
      onFault: (id, thrown) => this.#cannotSettle(id, thrown),
    });
    this.#tasks = new ServerTasks({ ...options, gate: this.#gate, limiter: this.#limiter });
  }

  get upstream(): Upstream {
    return this.#options.upstream;
  }

  /**
   * Handles a request, and returns its result.
   *
   * @throws Refusal, with the code and data of the error response
   */
  async handle(request: ProxyRequest): Promise<Record<string, unknown>> {
    try {
      return await this.#running.during(() => this.#answer(request));
    } catch (thrown) {
      throw this.#refusal(thrown);
    }
  }

  /** Resolves when no request is in progress. */
  idle(): Promise<void> {
    return this.#running.idle();
  }

  async #answer(request: ProxyRequest): Promise<Record<string, unknown>> {
    const { params, member } = strip(request.params);
    const presentation =
      member === undefined ? request.presentation : fromMember(member, this.#options.audience());
    const treatment = treatmentOf(request.method, this.#options.config.map);
    switch (treatment.kind) {
      case "plain":
        return {};
      case "list":
        return await this.#list(request, treatment.list, params, presentation);
      case "authorised":
        return await this.#observed(request, () => this.#call(request, params, presentation));
      case "subscription":
        return await this.#audited(request.method, () =>
          subscribe({ ...this.#options, gate: this.#gate }, request, params, presentation, treatment.isBegin),
        );
      case "task":
        return await this.#tasks.answer(request, params, presentation);
      case "passed":
        return await this.#forward(request, params);
      case "refused":
        throw new Refusal(METHOD_NOT_FOUND, "Method not found", { reason: "UNKNOWN_METHOD" });
    }
  }

  /** Called when a server of an earlier revision announces a new state of a task. Notifies the client of the task. */
  taskChanged(task: Readonly<Record<string, unknown>>, connection: string): void {
    this.#background(this.#tasks.changed(task, connection));
  }

  /** Decides whether a server's request may reach the client. Returns the parameters to forward. Throws Refusal. */
  async admitAsk(
    method: string,
    params: Record<string, unknown>,
    presentation?: Presentation,
  ): Promise<Record<string, unknown>> {
    const { map } = this.#options.config;
    const forwarded = this.#tasks.relatedAsk(params);
    if (map.passed.has(method)) return forwarded;
    try {
      await admit(this.#gate, gatedRequestOf(method, params, map), presentation);
      return forwarded;
    } catch (thrown) {
      throw this.#refusal(thrown);
    }
  }

  /**
   * Decides whether a request may listen to resources and tasks. The client needs the capabilities for all of them.
   *
   * @throws Refusal
   */
  async admitListen(request: ListenRequest): Promise<AdmittedListen> {
    const { audience, config } = this.#options;
    const options = { gate: this.#gate, map: config.map, tasks: this.#tasks, audience };
    try {
      return await this.#audited(LISTEN, () => admitListen(options, request));
    } catch (thrown) {
      throw this.#refusal(thrown);
    }
  }

  /**
   * Throws Refusal if the client may not learn that a resource changed, and DeputeError if the authoriser is
   * unavailable. `presentation` is the client's token; undefined for a client without a token.
   */
  async admitUpdate(uri: string, presentation: Presentation | undefined): Promise<void> {
    await admitWish(this.#gate, gatedRequestOf(SUBSCRIBE, { uri }, this.#options.config.map), presentation);
  }

  /** Closes the server, and resolves when all reservations of calls are settled. */
  async close(): Promise<void> {
    await this.#options.upstream.close();
    await Promise.all(this.#open);
    await this.#reservations.close();
  }

  async #list(
    request: ProxyRequest,
    list: List,
    params: Record<string, unknown>,
    presentation: Presentation | undefined,
  ): Promise<Record<string, unknown>> {
    const { config, authoriser, upstream } = this.#options;
    if (presentation === undefined && config.requireToken) return { [list.member]: [] };
    const grants = presentation === undefined ? undefined : await authoriser.grants(presentation.token);
    // If the token grants nothing, for example because it has expired, the list is empty. The reason follows when the
    // client uses the token for a call.
    if (grants?.ok === false) return { [list.member]: [] };
    const { capabilities } = await upstream.description();
    const family = request.method.split("/", 1)[0] as "tools" | "resources" | "prompts";
    if (capabilities[family] === undefined) return { [list.member]: [] };
    const result = await this.#forward(request, params);
    const entries = Array.isArray(result[list.member]) ? (result[list.member] as unknown[]) : [];
    const visibleEntries = visible(
      entries,
      list,
      config.map,
      grants?.capabilities,
      (await this.#tasks.eraOf(request)) !== undefined,
    );
    const pinned = PINNED.find((known) => known === list.member);
    if (pinned !== undefined) {
      const digests = upstream.definitions[pinned].note(visibleEntries);
      this.#listed.add(callerOf(request, presentation), pinned, digests);
    }
    return { ...withPrivateCache(result), [list.member]: visibleEntries };
  }

  /** Runs a request that only reads, and reports the decision only if it is a denial. */
  #audited<T>(method: string, run: () => Promise<T>): Promise<T> {
    const { onDecision } = this.#options;
    return decided({ method }, onDecision && denialsOf(onDecision), run);
  }

  #observed(
    { method, params }: ProxyRequest,
    call: () => Promise<Record<string, unknown>>,
  ): Promise<Record<string, unknown>> {
    const { onCall, clock, config } = this.#options;
    if (onCall === undefined) return call();
    const { rule, name } = gatedRequestOf(method, params, config.map);
    const report = (end: ObservedEnd) => onCall({ name: rule === undefined ? "" : name, ...end });
    return observed({ clock, report }, call);
  }

  async #call(
    request: ProxyRequest,
    params: Record<string, unknown>,
    presentation: Presentation | undefined,
  ): Promise<Record<string, unknown>> {
    const { config } = this.#options;
    const gatedRequest = gatedRequestOf(request.method, params, config.map);
    const { args, name } = gatedRequest;
    const about = { method: request.method, name, login: request.login };
    const admitted = await decided(about, this.#options.onDecision, async (facts) => {
      const granted = await admit(this.#gate, gatedRequest, presentation);
      facts.principal = granted.principal ?? "";
      facts.blocks = granted.blocks;
      if (request.method === TOOLS_CALL) await this.#assertBound(name, granted);
      return granted;
    });
    const counted = this.#limiter.begin(
      [
        { kind: "tool", name, limits: admitted.rule.limits },
        { kind: "server", name: "", limits: config.limits },
      ],
      admitted.principal ?? "",
      () => Buffer.byteLength(JSON.stringify(args)),
    );
    try {
      return await this.#admittedCall(request, params, presentation, { ...admitted, name, counted });
    } finally {
      counted.end();
    }
  }

  async #admittedCall(
    request: ProxyRequest,
    { task, ...plainParams }: Record<string, unknown>,
    presentation: Presentation | undefined,
    admitted: AdmittedCall,
  ): Promise<Record<string, unknown>> {
    const { upstream } = this.#options;
    const caller = callerOf(request, presentation);
    const wanted = task === undefined ? plainParams : { ...plainParams, task };
    const taskCall =
      request.method === TOOLS_CALL
        ? await this.#tasks.ofCall(request, wanted, admitted, admitted.name)
        : undefined;
    // If the server runs no tasks for this client, the parameter `task` is left out, so that the server creates none.
    const isPlain = request.method === TOOLS_CALL && taskCall?.era !== "legacy";
    const params = isPlain ? plainParams : wanted;
    const used = usedBy(request.method, params);
    if (used !== undefined) await this.#assertAsShown(used, admitted, caller);
    const input = request.method === TOOLS_CALL ? upstream.definitions.tools.input(admitted.name) : undefined;
    await this.#tasks.assertCallable(request, input?.isTaskOnly === true);
    const headers = callHeaders(request, params.arguments, input);
    const { session = caller, login = "" } = request;
    const processOf = JSON.stringify([login, session]);
    const options = {
      ...request,
      processOf,
      ...(headers && { headers }),
      takesTasks: taskCall !== undefined,
    };
    const violations =
      request.method === TOOLS_CALL && admitted.rule.checkArguments
        ? await argumentViolations(this.#options.schemaCheck, input, params.arguments, request.signal)
        : [];
    if (violations.length > 0) return invalidArguments(violations, request.revision);
    const held = await this.#reserve(admitted, presentation);
    const { client } = request;
    const send = (answers: Record<string, unknown>) => {
      const sent = { ...params, ...answers };
      const owner = () => callOwner(caller, request.method, sent);
      return upstream.call(request.method, sent, options, owner);
    };
    let result: Record<string, unknown>;
    try {
      result = await send({});
      if (client !== undefined) {
        result = await fulfil(result, {
          client,
          admit: (asking) => this.#assertAnswered(asking, presentation, undefined),
          again: send,
          abandon: (open) => upstream.abandon(open),
        });
      }
      result = this.#tasks.handedOut(result, request, presentation, taskCall);
    } catch (thrown) {
      throw await this.#failed(this.#tasks.explained(thrown, request), held);
    }
    // The response does not wait for the settlement. If the settlement fails, the whole reservation is charged when it
    // expires.
    if (held !== undefined) {
      this.#background(
        this.#options.timers.nextTurn().then(() => this.#settle(held, { kind: "answered", result })),
      );
    }
    await this.#assertAnswered(result, presentation, request.clientCapabilities);
    return withPrivateCache(result);
  }

  async #assertBound(tool: string, { principal, right }: Admitted): Promise<void> {
    const { config, authoriser } = this.#options;
    if (principal !== undefined && !(await authoriser.mayUse(principal, config.serverId, tool))) {
      throw notBound(right);
    }
  }

  /**
   * Throws Refusal if the entry's current definition differs from the one that the caller listed, or from the one that
   * the tool map pins: see definitionFault.
   */
  async #assertAsShown(used: Used, admitted: Admitted, caller: string): Promise<void> {
    const definitions = this.#options.upstream.definitions[used.list];
    const fault = definitionFault(used.list, {
      currentDigest: await definitions.currentDigest(used.name),
      pinned: admitted.rule.definition,
      listedDigest: this.#listed.of(caller, used),
      hasChanged: definitions.hasChanged(used.name),
    });
    if (fault !== undefined) throw otherDefinition(fault, admitted);
  }

  async #reserve(
    { rule, right, blocks, counted }: AdmittedCall,
    presentation: Presentation | undefined,
  ): Promise<CallReservation | undefined> {
    if (rule.cost.most === 0 || presentation === undefined) return undefined;
    counted.spend(rule.cost.most);
    const payer = { token: presentation.token, blocks };
    const reserved = await this.#reservations.reserve(payer, rule.cost.most, randomUuid());
    if (!reserved.ok) {
      counted.refund(rule.cost.most);
      throw overBudget(reserved.denial, right);
    }
    const { reservationId } = reserved;
    return { reservationId, cost: rule.cost, onUncharged: (microcents) => counted.refund(microcents) };
  }

  /**
   * Decides on the requests to the client that a result contains. If one request is refused, this method cancels the
   * call and throws Refusal.
   */
  async #assertAnswered(
    result: Record<string, unknown>,
    presentation: Presentation | undefined,
    declared: Declared | undefined,
  ): Promise<void> {
    const { config, upstream } = this.#options;
    try {
      await admitAnswered(result, { gate: this.#gate, map: config.map, presentation, declared });
    } catch (thrown) {
      upstream.abandon(result);
      throw thrown;
    }
  }

  #forward(request: ProxyRequest, params: Record<string, unknown>): Promise<Record<string, unknown>> {
    return this.#options.upstream.request(request.method, params, request);
  }

  /** Settles the reservation of a failed call, and returns the error for the caller. */
  async #failed(thrown: unknown, held: CallReservation | undefined): Promise<Error> {
    const fault = thrown instanceof UpstreamError ? thrown.fault : undefined;
    const isUnsent = fault?.kind === "unsent" || thrown instanceof UnknownState;
    const budget = await this.#settle(held, { kind: isUnsent ? "unsent" : "unknown" });
    // A refusal between two rounds of a call. Either the client may not get the server's requests, or it cannot answer
    // them.
    if (thrown instanceof Refusal) {
      const { code, message, data } = thrown;
      return new Refusal(code, message, budget.state === "none" ? data : { ...data, budget: { ...budget } });
    }
    return toldOf(thrown, budget);
  }

  #settle(held: CallReservation | undefined, outcome: Parameters<typeof settle>[2]): Promise<BudgetState> {
    return settle(this.#reservations, held, outcome, (id, thrown) => this.#cannotSettle(id, thrown));
  }

  #cannotSettle(reservationId: string, thrown: unknown): void {
    this.#options.onFault(`cannot settle the reservation ${reservationId}`, thrown);
  }

  #background(work: Promise<unknown>): void {
    this.#open.add(work);
    void work.finally(() => this.#open.delete(work));
  }

  #refusal(thrown: unknown): Refusal {
    if (thrown instanceof Refusal) return thrown;
    if (thrown instanceof UpstreamError) return toldOf(thrown, NOTHING);
    this.#options.onFault("cannot decide on a call", thrown);
    // The proxy does not forward a call on which the tokens service has not decided.
    const reason = thrown instanceof DeputeError ? thrown.reason : ErrorReason.DEPENDENCY_UNAVAILABLE;
    return new Refusal(INTERNAL_ERROR, "Internal error", { reason: reasonName(reason) });
  }
}
