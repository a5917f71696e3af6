import { type Clock, isObject, randomUuid, type Timers } from "@depute/core";
import {
  createMcpHandler,
  isLegacyRequest,
  type McpHttpHandler,
  type Server,
} from "@modelcontextprotocol/server";
import { inRequest, type RequestOrigin } from "./current-request.ts";
import { tokenKey } from "./digest.ts";
import {
  downstream,
  type Exchange,
  statusOf,
  watchedResources,
  withExchange,
  withStatus,
} from "./downstream.ts";
import { ListenBus } from "./listen-bus.ts";
import { fromMember, type Presentation } from "./presentation.ts";
import type { McpProxy } from "./proxy.ts";
import { declaredIn } from "./rules/client-capabilities.ts";
import { listenedResources, listenedTaskIds } from "./rules/listened.ts";
import { Refusal } from "./rules/refusal.ts";
import { strip } from "./rules/strip.ts";
import type { Era } from "./rules/task-form.ts";
import { opensSession, SESSION_HEADER, Sessions, unknownSession } from "./sessions.ts";
import type { ListName } from "./subscription.ts";
import { abandon, TaskStreams } from "./task-streams.ts";
import type { WatchedResources } from "./watched-resources.ts";

export interface HttpFaceOptions {
  readonly proxy: McpProxy;
  readonly clock: Clock;
  readonly timers: Timers;
  /** The target that a proof in `_delegateos` must name. */
  readonly audience: () => string;
  readonly onError: (error: Error) => void;
}

/** Serves a proxy over MCP's Streamable HTTP. Revision 2026-07-28 has no MCP sessions; older revisions allow them. */
export class HttpFace {
  readonly #options: HttpFaceOptions;
  readonly #sessions: Sessions;
  /** The subscriptions of each MCP session, by the SDK server that serves the session. */
  readonly #watchers = new Map<Server, WatchedResources>();
  readonly #bus = new ListenBus();
  readonly #taskStreams: TaskStreams;
  readonly #handler: McpHttpHandler;

  constructor(options: HttpFaceOptions) {
    this.#options = options;
    this.#sessions = new Sessions(options.clock);
    this.#taskStreams = new TaskStreams(options.timers, options.onError);
    this.#handler = createMcpHandler(({ era }) => this.#server(undefined, era), {
      onerror: options.onError,
      bus: this.#bus,
    });
  }

  /**
   * Answers a request.
   *
   * @param body the parsed JSON of the request. The body is parsed only once, so that the proxy forwards exactly the
   * value that the proxy checked.
   * @param presentation the token in the request's headers
   * @param login the principal of the request's login; empty if the server requires no login
   * @param origin the request id and the client's address, for the proxy's calls to the platform
   * @throws UpstreamError if the server behind the proxy cannot be reached; Refusal for a malformed `_delegateos`
   */
  answer(
    request: Request,
    body: unknown,
    presentation: Presentation | undefined,
    login = "",
    origin?: RequestOrigin,
  ): Promise<Response> {
    const answer = () => this.#answer(request, body, presentation, login);
    return origin === undefined ? answer() : inRequest(origin, answer);
  }

  async #answer(
    request: Request,
    body: unknown,
    presentation: Presentation | undefined,
    login: string,
  ): Promise<Response> {
    const exchange: Exchange = { presentation, login };
    const beside = { ...(body === undefined ? {} : { parsedBody: body }), ...withExchange(exchange) };
    // Checks first that the MCP server behind the proxy is reachable, because the SDK's error would not contain the
    // reason.
    await this.#options.proxy.upstream.description();
    const session = request.headers.get(SESSION_HEADER);
    // Only older revisions have MCP sessions. For a request without one, the SDK determines the revision.
    const mayHaveOne = session !== null || opensSession(body);
    if (!mayHaveOne || !(await isLegacyRequest(request, body))) {
      const answered = () => this.#handler.fetch(request, beside);
      return withStatus(await this.#listening(body, presentation, login, answered), exchange.status);
    }
    const caller = JSON.stringify([login, presentation === undefined ? "" : tokenKey(presentation.token)]);
    if (session !== null) {
      return this.#sessions.continue(session, caller, request, beside) ?? unknownSession();
    }
    const opened = this.#ofSession((body as { params?: unknown }).params, presentation);
    const id = randomUuid();
    const server = await this.#server(opened, "legacy", id);
    const onEnd = () => {
      this.#options.proxy.upstream.endSession(JSON.stringify([login, id]));
      this.#watchers.get(server)?.end();
      this.#watchers.delete(server);
    };
    return this.#sessions.begin({ server, caller, request, context: beside, onEnd });
  }

  /** Answers a request of revision 2026-07-28, whose stream may listen to single resources and to tasks. */
  async #listening(
    body: unknown,
    presented: Presentation | undefined,
    login: string,
    answer: () => Promise<Response>,
  ): Promise<Response> {
    const { id, method, params } = isObject(body) ? body : {};
    const given = isObject(params) ? params : {};
    try {
      const [uris, taskIds] = [listenedResources(method, given), listenedTaskIds(method, given)];
      if (uris.length === 0 && taskIds.length === 0) return await answer();
      if (taskIds.length > 0) this.#taskStreams.assertRoom();
      const declared = declaredIn(given);
      const request = { params: given, uris, taskIds, presented, login, declared };
      const { presentation, tasks } = await this.#options.proxy.admitListen(request);
      const opened = uris.length === 0 ? answer() : this.#watching(uris, presentation, answer);
      const stream = await opened.catch((thrown: unknown) => {
        abandon(tasks);
        throw thrown;
      });
      return this.#taskStreams.show(stream, id, tasks);
    } catch (thrown) {
      if (!(thrown instanceof Refusal)) throw thrown;
      const { code, message, data } = thrown;
      const status = statusOf(code);
      const error = { code, message, data };
      return Response.json({ jsonrpc: "2.0", id, error }, status === undefined ? {} : { status });
    }
  }

  /** Answers a request that listens to resources. */
  #watching(
    uris: readonly string[],
    presentation: Presentation | undefined,
    answer: () => Promise<Response>,
  ): Promise<Response> {
    const { proxy, onError } = this.#options;
    const authority = presentation === undefined ? {} : { presentation };
    const watch = async (notify: (uri: string) => Promise<void>) => {
      const watched = watchedResources(proxy, notify, onError);
      try {
        for (const uri of uris) await watched.subscribe(uri, authority);
      } catch (thrown) {
        watched.end();
        throw thrown;
      }
      return watched;
    };
    return this.#bus.open(watch, answer);
  }

  /** Notifies every client that a list has changed. */
  changed(list: ListName): void {
    const { notify } = this.#handler;
    if (list === "tools") notify.toolsChanged();
    else if (list === "resources") notify.resourcesChanged();
    else notify.promptsChanged();
    for (const server of this.#sessions.servers()) {
      server.notification({ method: `notifications/${list}/list_changed` }).catch(this.#options.onError);
    }
  }

  /** If a resource has changed, notifies each MCP session and each stream that watches the resource. */
  resourceChanged(uri: string): void {
    for (const watched of this.#watchers.values()) watched.changed(uri);
    this.#bus.resourceChanged(uri);
  }

  async close(): Promise<void> {
    await this.#handler.close();
    this.#taskStreams.close();
    await this.#sessions.close();
    await this.#options.proxy.close();
  }

  /**
   * Returns the token with which the client opened the MCP session, without its proof. The proof was valid only for
   * the request `initialize`, so each call needs a new proof.
   */
  #ofSession(params: unknown, presentation: Presentation | undefined): Presentation | undefined {
    const { member } = strip((params ?? {}) as Record<string, unknown>);
    const opened = member === undefined ? presentation : fromMember(member, this.#options.audience());
    return opened === undefined ? undefined : { ...opened, prove: async () => undefined };
  }

  #server(ofSession: Presentation | undefined, era: Era, session?: string): Promise<Server> {
    const { proxy, onError } = this.#options;
    return downstream({
      proxy,
      onError,
      era,
      presentation: (attached) => attached ?? ofSession,
      // A server of an MCP session keeps the session's subscriptions beyond one HTTP request. A server of a single
      // request keeps none: its client subscribes by `subscriptions/listen`.
      ...(session === undefined ? { listens: true } : { session, watchers: this.#watchers }),
    });
  }
}
