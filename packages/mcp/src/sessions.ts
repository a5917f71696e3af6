import { randomUUID } from "node:crypto";
import type { Clock } from "@depute/core";
import { type Server, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";

/** Sessions of clients of the revisions before 2026-07-28, at most; then the one that was silent longest ends. */
const MAX_SESSIONS = 1000;
/** How long a session may be silent. */
const IDLE_MS = 1_800_000;

/** What goes with a request: its JSON, and who sent it. */
type Beside = NonNullable<Parameters<WebStandardStreamableHTTPServerTransport["handleRequest"]>[1]>;

interface Session {
  readonly server: Server;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  used: number;
}

/** Sessions of one address. They belong to this replica; a client whose session is gone begins a new one. */
export class Sessions {
  readonly #clock: Clock;
  readonly #sessions = new Map<string, Session>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins a session with its first request. */
  async begin(server: Server, request: Request, beside: Beside): Promise<Response> {
    this.#sweep();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        this.#sessions.set(id, { server, transport, used: this.#clock.now() });
      },
    });
    server.onclose = () => {
      if (transport.sessionId !== undefined) this.#sessions.delete(transport.sessionId);
    };
    await server.connect(transport);
    const answer = await transport.handleRequest(request, beside);
    if (transport.sessionId === undefined || !this.#sessions.has(transport.sessionId)) await server.close();
    return answer;
  }

  /** Goes on with a session; undefined when there is none of that id. */
  continue(id: string, request: Request, beside: Beside): Promise<Response> | undefined {
    const session = this.#sessions.get(id);
    if (session === undefined) return undefined;
    session.used = this.#clock.now();
    // In the order of their last use, so that the first is the one to end.
    this.#sessions.delete(id);
    this.#sessions.set(id, session);
    return session.transport.handleRequest(request, beside);
  }

  /** Every server that has a session, to tell its client something. */
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
