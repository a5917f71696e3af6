import { randomUUID } from "node:crypto";
import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Clock, DeputeError, ErrorReason, nextTurn, reasonName } from "@depute/core";
import type { Authoriser } from "./authoriser.ts";
import { tokenKey } from "./digest.ts";
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
import { fromMember, type Presentation } from "./presentation.ts";
import { definitionFault, PINNED, type Used, usedBy } from "./rules/definition.ts";
import { askedBy, type List, TOOLS_CALL, treatmentOf } from "./rules/methods.ts";
import type { UpstreamConfig } from "./rules/read-config.ts";
import {
  type BudgetState,
  INTERNAL_ERROR,
  METHOD_NOT_FOUND,
  Refusal,
  upstreamFailed,
  upstreamTooLong,
} from "./rules/refusal.ts";
import { strip } from "./rules/strip.ts";
import { visible } from "./rules/visible.ts";
import { type Held, NOTHING, settle } from "./settle.ts";
import type { CallOptions, Upstream } from "./upstream.ts";
import { UpstreamError } from "./upstream-fault.ts";

/** A request of a client, and with what authority it came apart from its own `_delegateos`. */
export interface ProxyRequest extends CallOptions {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** The token of the header, of the session, or of the proxy's own files. */
  readonly presentation?: Presentation;
  /** Names the connection or session that it came by, for a caller without a token; absent where there is none. */
  readonly session?: string;
}

export interface ProxyOptions {
  readonly config: UpstreamConfig;
  readonly upstream: Upstream;
  readonly authoriser: Authoriser;
  readonly clock: Clock;
  /** What a proof in `_delegateos` has to name as its target. */
  readonly audience: () => string;
  /** Told of what a caller is not. */
  readonly onFault: (what: string, thrown: unknown) => void;
}

/**
 * Stands between clients and one MCP server, and lets through what the token of each request allows (DelegateOS 11).
 *
 * Nothing of one request is there for another one, but which definitions were listed to whom.
 */
export class McpProxy {
  readonly #options: ProxyOptions;
  readonly #gate: GateOptions;
  readonly #listed: Listed;
  /** Settlements that nobody waits for. */
  readonly #open = new Set<Promise<unknown>>();

  constructor(options: ProxyOptions) {
    this.#options = options;
    const { authoriser, config, clock } = options;
    this.#gate = { authoriser, requireToken: config.requireToken, realPath };
    this.#listed = new Listed(clock);
  }

  get upstream(): Upstream {
    return this.#options.upstream;
  }

  /**
   * Answers a request.
   *
   * @throws Refusal, whose code and data are the answer's error
   */
  async handle(request: ProxyRequest): Promise<Record<string, unknown>> {
    try {
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
          return await this.#call(request, params, presentation);
        case "passed":
          return await this.#forward(request, params);
        case "refused":
          throw new Refusal(METHOD_NOT_FOUND, "Method not found", { reason: "UNKNOWN_METHOD" });
      }
    } catch (thrown) {
      throw this.#refusal(thrown);
    }
  }

  /** Whether a request of the server to the client passes, and what the client then is asked; throws Refusal. */
  async admitAsk(
    method: string,
    params: Record<string, unknown>,
    presentation?: Presentation,
  ): Promise<void> {
    const { map } = this.#options.config;
    if (map.passed.has(method)) return;
    try {
      await admit(this.#gate, askedBy(method, params, map), presentation);
    } catch (thrown) {
      throw this.#refusal(thrown);
    }
  }

  /** Resolves when everything that was begun is settled. */
  async close(): Promise<void> {
    await this.#options.upstream.close();
    await Promise.all(this.#open);
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
    // A token that is over shows nothing; a call with it is told why.
    if (grants?.ok === false) return { [list.member]: [] };
    const { capabilities } = await upstream.about();
    const family = request.method.split("/", 1)[0] as "tools" | "resources" | "prompts";
    if (capabilities[family] === undefined) return { [list.member]: [] };
    const result = await this.#forward(request, params);
    const entries = Array.isArray(result[list.member]) ? (result[list.member] as unknown[]) : [];
    const shown = visible(entries, list, config.map, grants?.capabilities);
    const pinned = PINNED.find((known) => known === list.member);
    if (pinned !== undefined) {
      const digests = upstream.definitions[pinned].note(shown);
      this.#listed.add(callerOf(request, presentation), pinned, digests);
    }
    return { ...kept(result), [list.member]: shown };
  }

  async #call(
    request: ProxyRequest,
    params: Record<string, unknown>,
    presentation: Presentation | undefined,
  ): Promise<Record<string, unknown>> {
    const { config, upstream } = this.#options;
    const asked = askedBy(request.method, params, config.map);
    const admitted = await admit(this.#gate, asked, presentation);
    if (request.method === TOOLS_CALL) await this.#assertBound(asked.name, admitted);
    const used = usedBy(request.method, params);
    if (used !== undefined) await this.#assertAsShown(used, admitted, callerOf(request, presentation));
    const held = await this.#reserve(admitted, presentation);
    let result: Record<string, unknown>;
    try {
      result = await upstream.request(request.method, params, request);
    } catch (thrown) {
      throw await this.#failed(thrown, held);
    }
    // The answer does not wait for the books: a charge that is lost is made in full when the reservation is over.
    if (held !== undefined) {
      this.#background(nextTurn().then(() => this.#settle(held, { kind: "answered", result })));
    }
    await this.#assertAnswered(result, presentation);
    return kept(result);
  }

  async #assertBound(tool: string, { principal, right }: Admitted): Promise<void> {
    const { config, authoriser } = this.#options;
    if (principal !== undefined && !(await authoriser.mayUse(principal, config.serverId, tool))) {
      throw notBound(right);
    }
  }

  /** What a caller was shown is what may run. */
  async #assertAsShown(used: Used, admitted: Admitted, caller: string): Promise<void> {
    const definitions = this.#options.upstream.definitions[used.list];
    const fault = definitionFault(used.list, {
      present: await definitions.present(used.name),
      pinned: admitted.rule.definition,
      shown: this.#listed.of(caller, used),
      hasChanged: definitions.hasChanged(used.name),
    });
    if (fault !== undefined) throw otherDefinition(fault, admitted);
  }

  async #reserve(
    { rule, right }: Admitted,
    presentation: Presentation | undefined,
  ): Promise<Held | undefined> {
    if (rule.cost.most === 0 || presentation === undefined) return undefined;
    const { authoriser } = this.#options;
    const reserved = await authoriser.reserve(presentation.token, rule.cost.most, randomUUID());
    if (!reserved.ok) throw overBudget(reserved.denial, right);
    return { reservationId: reserved.reservationId, cost: rule.cost };
  }

  /** The server wants something of the client before it goes on (revision 2026-07-28): each wish is judged. */
  async #assertAnswered(
    { resultType, inputRequests }: Record<string, unknown>,
    presentation: Presentation | undefined,
  ): Promise<void> {
    if (resultType !== "input_required" || typeof inputRequests !== "object" || inputRequests === null)
      return;
    for (const wish of Object.values(inputRequests)) {
      const { method, params } = (wish ?? {}) as { method?: unknown; params?: Record<string, unknown> };
      const { map } = this.#options.config;
      if (map.passed.has(String(method))) continue;
      await admitWish(this.#gate, askedBy(String(method), params ?? {}, map), presentation);
    }
  }

  #forward(request: ProxyRequest, params: Record<string, unknown>): Promise<Record<string, unknown>> {
    return this.#options.upstream.request(request.method, params, request);
  }

  /** What a caller is told of a call that failed after money was set aside. */
  async #failed(thrown: unknown, held: Held | undefined): Promise<Error> {
    const fault = thrown instanceof UpstreamError ? thrown.fault : undefined;
    const budget = await this.#settle(held, { kind: fault?.kind === "unsent" ? "unsent" : "unknown" });
    return toldOf(thrown, budget);
  }

  #settle(held: Held | undefined, outcome: Parameters<typeof settle>[2]): Promise<BudgetState> {
    const { authoriser, onFault } = this.#options;
    return settle(authoriser, held, outcome, (id, thrown) => onFault(`cannot settle ${id}`, thrown));
  }

  #background(work: Promise<unknown>): void {
    this.#open.add(work);
    void work.finally(() => this.#open.delete(work));
  }

  #refusal(thrown: unknown): Refusal {
    if (thrown instanceof Refusal) return thrown;
    if (thrown instanceof UpstreamError) return toldOf(thrown, NOTHING);
    this.#options.onFault("cannot decide", thrown);
    // Who cannot ask whether a call is allowed does not make it.
    const reason = thrown instanceof DeputeError ? thrown.reason : ErrorReason.DEPENDENCY_UNAVAILABLE;
    return new Refusal(INTERNAL_ERROR, "Internal error", { reason: reasonName(reason) });
  }
}

/** Who lists and calls: the holder of a token, else whoever is at the other end of a connection. */
function callerOf({ session = "" }: ProxyRequest, presentation: Presentation | undefined): string {
  return presentation === undefined ? `session ${session}` : `token ${tokenKey(presentation.token)}`;
}

/** A fault of the server in the form in which its caller gets it. */
function toldOf(thrown: unknown, budget: BudgetState): Refusal {
  if (!(thrown instanceof UpstreamError)) return upstreamFailed("INTERNAL", "the call failed", budget);
  const { fault } = thrown;
  switch (fault.kind) {
    case "error": {
      const data = fault.data === undefined ? {} : { data: fault.data as never };
      return new Refusal(fault.code, fault.message, { ...data, budget: { ...budget } });
    }
    case "timeout":
      return upstreamFailed("DEADLINE_EXCEEDED", fault.detail, budget);
    case "oversize":
      return upstreamTooLong(fault.detail, fault.maxBytes, budget);
    default:
      return upstreamFailed("DEPENDENCY_UNAVAILABLE", `${fault.kind}: ${fault.detail}`, budget);
  }
}

/** An answer that was for one token is not kept for others (revision 2026-07-28, `cacheScope`). */
function kept(result: Record<string, unknown>): Record<string, unknown> {
  return result.cacheScope === undefined ? result : { ...result, cacheScope: "private" };
}

/** A path with its links followed; of one that does not exist yet, the folder that it would be in. */
async function realPath(path: string): Promise<string | undefined> {
  let rest = "";
  for (let at = path; ; at = dirname(at)) {
    try {
      return join(await realpath(at), rest);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "ENOENT" || at === dirname(at)) return undefined;
      rest = join(basename(at), rest);
    }
  }
}
