import type { JsonObject } from "@bufbuild/protobuf";
import type { Clock } from "@depute/core";
import {
  type AuthInfo,
  isLegacyRequest,
  type MessageExtraInfo,
  type Server,
  type ServerContext,
  type StandardSchemaV1,
} from "@modelcontextprotocol/server";
import { opensSession, type RequestContext, SESSION_HEADER, Sessions, unknownSession } from "./sessions.ts";

/** Maximum number of ended sessions whose ids are remembered. */
const MAX_ENDED = 1000;
/** Timeout in milliseconds of a question to the client. It is long, because a person may have to decide. */
const ASK_MS = 600_000;

/** A question of this process to the client of a session. */
export interface Elicitation {
  /** The parameters of `elicitation/create`. */
  readonly params: JsonObject;
  /** The abort of this signal withdraws the question. */
  readonly signal: AbortSignal;
}

/** The client's response to a question, and the data of the HTTP request in which the response arrived. */
export interface Elicited<Call> {
  readonly response: unknown;
  readonly call: Call;
}

/** A server's view of the session of its requests. */
export interface ToolSession<Call> {
  /**
   * Asks the client on the stream of the client's own request. Rejects if the client answers with an error or not at
   * all, if the session ends, or if the question is withdrawn.
   */
  elicit(context: ServerContext, elicitation: Elicitation): Promise<Elicited<Call>>;
}

export interface ToolSessionsOptions<Call> {
  readonly clock: Clock;
  /** See `callerOf` of ToolServerOptions. */
  readonly callerOf: (call: Call) => string;
  /** Creates the SDK server of a session. */
  readonly create: (session: ToolSession<Call>) => Server;
  /** Returns the data of the HTTP request in which a message arrived. */
  readonly callIn: (authInfo: AuthInfo | undefined) => Call;
}

/**
 * The MCP sessions of a tool server, for clients of revisions before 2026-07-28. A session keeps the level of log
 * messages, and lets the server ask its client. It carries no authority: each request has its own credentials. So a
 * request of a session that this process does not have, or that belongs to another caller, is served without a
 * session, for example after a restart or at another replica.
 */
export class ToolSessions<Call> {
  readonly #options: ToolSessionsOptions<Call>;
  readonly #sessions: Sessions;
  /** The ids of sessions that their clients ended, the oldest first. */
  readonly #ended = new Set<string>();

  constructor(options: ToolSessionsOptions<Call>) {
    this.#options = options;
    this.#sessions = new Sessions(options.clock);
  }

  /**
   * Answers a request in its session. The request `initialize` begins a new session.
   *
   * @returns undefined if the request has no session here; the caller then serves it without one
   */
  async answer(
    request: Request,
    body: unknown,
    call: Call,
    context: RequestContext,
  ): Promise<Response | undefined> {
    const id = request.headers.get(SESSION_HEADER);
    if ((id === null && !opensSession(body)) || !(await isLegacyRequest(request, body))) return undefined;
    const caller = this.#options.callerOf(call);
    if (id === null) return this.#begin(caller, request, context);
    if (this.#ended.has(id)) return unknownSession();
    // The server sends messages only during a request, so there is no stream to open. 405 says so.
    if (request.method === "GET") return undefined;
    const answer = await this.#sessions.continue(id, caller, request, context);
    if (request.method === "DELETE" && answer?.ok === true) this.#rememberEnd(id);
    return answer;
  }

  close(): Promise<void> {
    return this.#sessions.close();
  }

  #begin(caller: string, request: Request, context: RequestContext): Promise<Response> {
    const { create, callIn } = this.#options;
    let answering: Call | undefined;
    const server = create({
      async elicit({ mcpReq }, { params, signal }) {
        // The SDK validates a response before it handles the next message. So `answering` belongs to the request in
        // which this response arrived.
        const captured: StandardSchemaV1<unknown, Elicited<Call>> = {
          "~standard": {
            version: 1,
            vendor: "depute",
            validate: (response) => ({ value: { response, call: answering as Call } }),
          },
        };
        return mcpReq.send({ method: "elicitation/create", params }, captured, { timeout: ASK_MS, signal });
      },
    });
    const onMessage = (_: unknown, extra?: MessageExtraInfo) => {
      answering = callIn(extra?.authInfo);
    };
    return this.#sessions.begin({ server, caller, request, context, onMessage });
  }

  #rememberEnd(id: string): void {
    if (this.#ended.size >= MAX_ENDED)
      for (const oldest of this.#ended) if (this.#ended.delete(oldest)) break;
    this.#ended.add(id);
  }
}
