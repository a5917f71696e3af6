import { type Clock, isObject, randomUuid } from "@depute/core";
import { type Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";

/** The HTTP header with the id of an MCP session. */
export const SESSION_HEADER = "mcp-session-id";

/**
 * Maximum number of MCP sessions. At the limit, the session that was idle longest ends. Only clients of MCP revisions
 * before 2026-07-28 use sessions.
 */
const MAX_SESSIONS = 1000;
/** Milliseconds without a request after which an MCP session ends. */
const IDLE_MS = 1_800_000;

/** The context of a request: its parsed JSON, and its sender. */
export type RequestContext = NonNullable<
  Parameters<WebStandardStreamableHTTPServerTransport["handleRequest"]>[1]
>;

type Transport = WebStandardStreamableHTTPServerTransport;

interface Session {
  readonly server: Server;
  caller: string;
  readonly transport: Transport;
  used: number;
  /** Number of requests whose answers are not complete. */
  open: number;
}

/** The first request of a session. */
export interface Beginning {
  readonly server: Server;
  /**
   * Identifies the login and the token in the request's headers. Every later request of the session must have the same
   * login and token, because the session id alone does not identify the caller. If this text is empty, the first later
   * request with credentials determines the caller.
   */
  readonly caller: string;
  readonly request: Request;
  readonly context: RequestContext;
  /** Receives every message of the client, before the server handles the message. */
  readonly onMessage?: NonNullable<Transport["onmessage"]>;
  /** Called when the session has ended. */
  readonly onEnd?: () => void;
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

  /** Begins an MCP session with its first request. */
  async begin({ server, caller, request, context, onMessage, onEnd }: Beginning): Promise<Response> {
    this.#sweep();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUuid,
      onsessioninitialized: (id) => {
        this.#sessions.set(id, { server, caller, transport, used: this.#clock.now(), open: 0 });
      },
    });
    server.onclose = () => {
      if (transport.sessionId !== undefined) this.#sessions.delete(transport.sessionId);
      onEnd?.();
    };
    if (onMessage !== undefined) transport.onmessage = onMessage;
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
    session.caller = caller;
    this.#use(id, session);
    const answer = () => session.transport.handleRequest(request, context);
    return request.method === "POST" ? this.#whileOpen(id, session, answer) : answer();
  }

  /** Iterates over the servers of all MCP sessions. Each server can notify the client of its session. */
  *servers(): Iterable<Server> {
    for (const { server } of this.#sessions.values()) yield server;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(({ server }) => server.close()));
  }

  /** Moves a session to the end of the map. So the session that was idle longest is always the first. */
  #use(id: string, session: Session): void {
    session.used = this.#clock.now();
    if (this.#sessions.delete(id)) this.#sessions.set(id, session);
  }

  /** Counts a request as open until its answer is complete, because an idle session ends only without open requests. */
  async #whileOpen(id: string, session: Session, run: () => Promise<Response>): Promise<Response> {
    session.open++;
    const end = () => {
      session.open--;
      this.#use(id, session);
    };
    try {
      return withEnd(await run(), end);
    } catch (thrown) {
      end();
      throw thrown;
    }
  }

  #sweep(): void {
    const since = this.#clock.now() - IDLE_MS;
    for (const { server, used, open } of this.#sessions.values()) {
      const isFull = this.#sessions.size >= MAX_SESSIONS;
      if (used > since && !isFull) return;
      if (open === 0 || isFull) void server.close();
    }
  }
}

/** Returns the answer, and calls `end` once when its body has ended or the client has cancelled it. */
function withEnd(answer: Response, end: () => void): Response {
  const { body, status, headers } = answer;
  if (body === null) {
    end();
    return answer;
  }
  const reader = body.getReader();
  reader.closed.then(end, end);
  const watched = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(watched, { status, headers });
}

/** Returns the response for an unknown MCP session, as MCP defines it. The client must then begin a new session. */
export function unknownSession(): Response {
  const error = { code: -32001, message: "Session not found" };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 404 });
}

/** Whether a message begins a session. Only clients of MCP revisions before 2026-07-28 send it. */
export function opensSession(body: unknown): boolean {
  return isObject(body) && body.method === "initialize";
}
