import { type Clock, randomUuid } from "@depute/core";
import { type Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";

/**
 * Maximum number of MCP sessions. At the limit, the session that was idle longest ends. Only clients of MCP revisions
 * before 2026-07-28 use sessions.
 */
const MAX_SESSIONS = 1000;
/** Milliseconds without a request after which an MCP session ends. */
const IDLE_MS = 1_800_000;

/** The context of a request: its parsed JSON, and its sender. */
type RequestContext = NonNullable<Parameters<WebStandardStreamableHTTPServerTransport["handleRequest"]>[1]>;

interface Session {
  readonly server: Server;
  readonly caller: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  used: number;
}

/**
 * The MCP sessions at one URL path. Sessions exist only in this process's memory, so clients must begin new sessions
 * after a restart.
 */
export class Sessions {
  readonly #clock: Clock;
  readonly #sessions = new Map<string, Session>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Begins an MCP session with its first request.
   *
   * @param caller identifies the login and the token in the request's headers. Every later request of the session
   * must have the same login and token, because the session id alone does not identify the caller.
   * @param onEnd called when the session has ended
   */
  async begin(
    server: Server,
    caller: string,
    request: Request,
    context: RequestContext,
    onEnd: () => void,
  ): Promise<Response> {
    this.#sweep();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUuid,
      onsessioninitialized: (id) => {
        this.#sessions.set(id, { server, caller, transport, used: this.#clock.now() });
      },
    });
    server.onclose = () => {
      if (transport.sessionId !== undefined) this.#sessions.delete(transport.sessionId);
      onEnd();
    };
    await server.connect(transport);
    const answer = await transport.handleRequest(request, context);
    if (transport.sessionId === undefined || !this.#sessions.has(transport.sessionId)) await server.close();
    return answer;
  }

  /** Continues an MCP session; returns undefined for an unknown id, and for another caller's session. */
  continue(
    id: string,
    caller: string,
    request: Request,
    context: RequestContext,
  ): Promise<Response> | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined || (session.caller !== "" && session.caller !== caller)) return undefined;
    session.used = this.#clock.now();
    // Moves the MCP session to the end of the map. So the session that was idle longest is always the first.
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
    return session.transport.handleRequest(request, context);
  }

  /** Iterates over the servers of all MCP sessions. Each server can notify the client of its session. */
  *servers(): Iterable<Server> {
    for (const { server } of this.#sessions.values()) yield server;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(({ server }) => server.close()));
  }

  #sweep(): void {
    const since = this.#clock.now() - IDLE_MS;
    for (const { server, used } of this.#sessions.values()) {
      if (used > since && this.#sessions.size < MAX_SESSIONS) return;
      void server.close();
    }
  }
}
