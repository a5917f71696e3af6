import { randomUUID } from "node:crypto";
import type { Clock } from "@depute/core";
import {
  createMcpHandler,
  isLegacyRequest,
  type McpHttpHandler,
  type Server,
} from "@modelcontextprotocol/server";
import { downstream, withPresentation } from "./downstream.ts";
import { fromMember, type Presentation } from "./presentation.ts";
import type { McpProxy } from "./proxy.ts";
import { strip } from "./rules/strip.ts";
import { Sessions } from "./sessions.ts";
import type { ListName } from "./subscription.ts";

export interface HttpFaceOptions {
  readonly proxy: McpProxy;
  readonly clock: Clock;
  /** What a proof in `_delegateos` has to name as its target. */
  readonly audience: () => string;
  readonly onError: (error: Error) => void;
}

/**
 * A proxy as MCP's Streamable HTTP: revision 2026-07-28, which has no sessions, and those before, with a session or
 * without.
 */
export class HttpFace {
  readonly #options: HttpFaceOptions;
  readonly #sessions: Sessions;
  readonly #handler: McpHttpHandler;

  constructor(options: HttpFaceOptions) {
    this.#options = options;
    this.#sessions = new Sessions(options.clock);
    this.#handler = createMcpHandler(() => this.#server(undefined), { onerror: options.onError });
  }

  /**
   * Answers a request.
   *
   * @param body its JSON, parsed once: what is judged is what is forwarded
   * @param shown the token of its headers
   * @throws UpstreamError when the server behind the proxy cannot be reached; Refusal for a malformed `_delegateos`
   */
  async answer(request: Request, body: unknown, shown: Presentation | undefined): Promise<Response> {
    const beside = { ...(body === undefined ? {} : { parsedBody: body }), ...withPresentation(shown) };
    // Whether the server can be reached is found out first: the SDK would hide the reason.
    await this.#options.proxy.upstream.about();
    const session = request.headers.get("mcp-session-id");
    // The SDK finds out the revision of what has no session; sessions are of the revisions that have them.
    const mayHaveOne = session !== null || isInitialize(body);
    if (!mayHaveOne || !(await isLegacyRequest(request, body))) return this.#handler.fetch(request, beside);
    if (session !== null) {
      return this.#sessions.continue(session, request, beside) ?? Response.json(NO_SESSION, { status: 404 });
    }
    const opened = this.#ofSession((body as { params?: unknown }).params, shown);
    const server = await this.#server(opened, randomUUID());
    return this.#sessions.begin(server, request, beside);
  }

  /** Tells every client that a list has changed. */
  changed(list: ListName): void {
    const { notify } = this.#handler;
    if (list === "tools") notify.toolsChanged();
    else if (list === "resources") notify.resourcesChanged();
    else notify.promptsChanged();
    for (const server of this.#sessions.servers()) {
      server.notification({ method: `notifications/${list}/list_changed` }).catch(this.#options.onError);
    }
  }

  async close(): Promise<void> {
    await this.#handler.close();
    await this.#sessions.close();
    await this.#options.proxy.close();
  }

  /** The token that a session was opened with. Its proof was for that, so that every call needs one of its own. */
  #ofSession(params: unknown, shown: Presentation | undefined): Presentation | undefined {
    const { member } = strip((params ?? {}) as Record<string, unknown>);
    const opened = member === undefined ? shown : fromMember(member, this.#options.audience());
    return opened === undefined ? undefined : { ...opened, prove: async () => undefined };
  }

  #server(ofSession: Presentation | undefined, session?: string): Promise<Server> {
    const { proxy, onError } = this.#options;
    return downstream({
      proxy,
      onError,
      presentation: (shown) => shown ?? ofSession,
      ...(session === undefined ? {} : { session }),
    });
  }
}

/** As MCP has it: a client that reads it begins a new session. */
const NO_SESSION = { jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } };

function isInitialize(body: unknown): boolean {
  return typeof body === "object" && body !== null && "method" in body && body.method === "initialize";
}
