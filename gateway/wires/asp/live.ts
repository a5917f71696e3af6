import type { IncomingMessage } from "node:http";
import type { JsonObject } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import type { Session } from "@depute/contracts/asp/v0/session_pb";
import type { WatchSessionResponse } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { DeputeError, ErrorReason, formatTime, invalid } from "@depute/core";
import {
  certificateOfSocket,
  forwardWireHeaders,
  refuseUpgrade,
  requestIdFrom,
  type UpgradeRoute,
} from "@depute/service";
import { WebSocket, WebSocketServer } from "ws";
import type { Clients } from "../../edge/clients.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { toAspError } from "./errors.ts";
import { type ClientFrame, frames, MAX_FRAME_BYTES, readFrame } from "./frames.ts";
import { TrustWatch } from "./trust-watch.ts";

/** The path at which clients open a WebSocket for a session. */
export const SOCKET_PATH = "/v1/asp/sessions/{id}/ws";
/** Time in which a client must authenticate, in milliseconds. */
export const AUTH_MS = 10_000;
/**
 * Milliseconds between two heartbeats. The server disconnects a client that leaves more than MAX_SILENT_BEATS
 * consecutive heartbeats unanswered.
 */
export const HEARTBEAT_MS = 15_000;
const MAX_SILENT_BEATS = 3;
/**
 * Maximum time in milliseconds for which a client may leave sent data unread. The server then closes the connection.
 */
const STALLED_MS = 60_000;
/** Maximum number of a client's frames that wait until earlier frames are handled. */
const MAX_WAITING = 128;

/**
 * Codes with which the server closes connections: codes of RFC 6455 7.4.1, and code 4001 of ASP transports "WebSocket".
 */
const CLOSE = {
  DONE: 1000,
  AWAY: 1001,
  NOT_TEXT: 1003,
  POLICY: 1008,
  FAULT: 1011,
  UNAUTHENTICATED: 4001,
} as const;

/** The close codes that mean a fault of the client. */
const REFUSALS: ReadonlySet<number> = new Set([CLOSE.NOT_TEXT, CLOSE.POLICY, CLOSE.UNAUTHENTICATED]);

/**
 * Serves live sessions over WebSocket. A client authenticates, receives the messages of a session in order, and sends
 * messages. (ASP transports "WebSocket")
 */
export function aspUpgrades(clients: Clients, deps: WireDeps): UpgradeRoute[] {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
  });
  return [
    {
      path: SOCKET_PATH,
      upgrade(request, socket, head, { id = "" }) {
        if (deps.stopping.aborted) return refuseUpgrade(socket, 503);
        server.handleUpgrade(request, socket, head, (peer) => {
          new LiveSession(peer, request, id, clients, deps).open();
        });
      },
    },
  ];
}

/** One client's connection to one session. */
class LiveSession {
  readonly #peer: WebSocket;
  readonly #received: Headers;
  /**
   * The SPIFFE id of the client's certificate; empty if the certificate has no id, undefined if the client has no
   * certificate.
   */
  readonly #certificate: string | undefined;
  readonly #address: string;
  readonly #requestId: string;
  readonly #sessionId: string;
  readonly #clients: Clients;
  readonly #deps: WireDeps;
  readonly #closed = new AbortController();
  readonly #trust: TrustWatch;
  #credentials: ClientFrame & { type: "auth" } = { type: "auth", sinceSequence: 0 };
  #isLetIn = false;
  #waiting = 0;
  #tail: Promise<void> = Promise.resolve();
  #silentBeats = 0;
  readonly #begin: number;
  #cancelTimer: () => void = () => {};

  constructor(
    peer: WebSocket,
    request: IncomingMessage,
    sessionId: string,
    clients: Clients,
    deps: WireDeps,
  ) {
    const { headers, socket } = request;
    this.#peer = peer;
    this.#received = new Headers();
    for (const name of ["authorization", "dpop", "x-api-key", "traceparent", "tracestate"]) {
      const value = headers[name];
      if (typeof value === "string") this.#received.set(name, value);
    }
    this.#certificate = certificateOfSocket(socket);
    this.#address = deps.addresses.ofRequest(request);
    this.#requestId = requestIdFrom(undefined);
    this.#sessionId = sessionId;
    this.#clients = clients;
    this.#deps = deps;
    this.#begin = deps.clock.monotonic();
    this.#trust = new TrustWatch(clients, deps.timers);
  }

  open(): void {
    const { stopping, timers } = this.#deps;
    const goAway = () => this.#close(CLOSE.AWAY, "the server is shutting down");
    stopping.addEventListener("abort", goAway, { once: true });
    this.#peer.on("close", (code: number) => {
      stopping.removeEventListener("abort", goAway);
      this.#cancelTimer();
      this.#closed.abort();
      this.#logEnd(code);
    });
    this.#peer.on("error", (error) => this.#deps.log.debug({ err: error }, "a live session failed"));
    this.#peer.on("message", (data: Buffer, isBinary: boolean) => this.#take(data, isBinary));
    this.#cancelTimer = timers.after(AUTH_MS, () =>
      this.#close(CLOSE.UNAUTHENTICATED, "no auth frame arrived in time: connect again and send one"),
    );
  }

  /** Logs the end of a connection with its close code. The line has the form of the log lines of HTTP requests. */
  #logEnd(code: number): void {
    const { clock, log, principalOf } = this.#deps;
    const level = REFUSALS.has(code) ? "info" : "debug";
    if (!log.isLevelEnabled(level)) return;
    const fields = {
      wire: "asp",
      method: "GET",
      path: SOCKET_PATH,
      code,
      status: 101,
      ms: Math.round(clock.monotonic() - this.#begin),
      request_id: this.#requestId,
      caller: principalOf(Object.fromEntries(this.#received)) || "unproven",
    };
    log[level](fields, "wire");
  }

  /**
   * Handles the frames of a client one after the other. If MAX_WAITING frames already wait, the next frame disconnects
   * the client.
   */
  #take(data: Buffer, isBinary: boolean): void {
    this.#silentBeats = 0;
    if (isBinary || this.#waiting >= MAX_WAITING) {
      if (isBinary) this.#close(CLOSE.NOT_TEXT, "a frame must be JSON text");
      else this.#close(CLOSE.POLICY, "too many frames wait: send more slowly");
      return;
    }
    this.#waiting += 1;
    this.#peer.pause();
    this.#tail = this.#tail.then(async () => {
      await this.#handle(data);
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#peer.resume();
    });
  }

  async #handle(data: Buffer): Promise<void> {
    if (this.#closed.signal.aborted) return;
    let messageId: string | undefined;
    try {
      const frame = readFrame(data);
      if (frame.type === "pong") return;
      if (frame.type === "auth") return await this.#authenticate(frame);
      messageId = frame.envelope.messageId;
      if (!this.#isLetIn) {
        throw new DeputeError(ErrorReason.UNAUTHENTICATED, "the first frame must be auth");
      }
      await this.#append(frame.envelope);
    } catch (thrown) {
      await this.#tellError(thrown, messageId);
      if (!this.#isLetIn) this.#close(CLOSE.UNAUTHENTICATED, "authentication failed");
    }
  }

  /**
   * Starts to watch the session with the client's credentials. The first event of the watch shows that the client may
   * read the session.
   */
  async #authenticate(frame: ClientFrame & { type: "auth" }): Promise<void> {
    if (this.#isLetIn) throw invalid("type", "must be auth only once");
    this.#credentials = frame;
    const options = this.#options("GET", "ws", frame.dpop);
    const request = {
      sessionId: this.#sessionId,
      afterSequence: BigInt(frame.sinceSequence),
      sendStart: true,
    };
    const watched = this.#clients.aspSessions.watchSession(request, options)[Symbol.asyncIterator]();
    const first = await watched.next();
    const session = first.done === true ? undefined : first.value.session;
    if (session === undefined) {
      throw new DeputeError(ErrorReason.INTERNAL, "a service answered without its message");
    }
    this.#isLetIn = true;
    this.#cancelTimer();
    this.#beatLater();
    const participants = session.participants.map(({ agentId }) => agentId);
    await this.#trust.note(participants, this.#closed.signal);
    await this.#send(frames.authOk(session));
    await this.#send(frames.state(session.state));
    this.#tellAll(watched, session).catch((error: unknown) => {
      if (!this.#closed.signal.aborted) this.#deps.log.debug({ err: error }, "a live session failed");
    });
  }

  async #tellAll(watched: AsyncIterator<WatchSessionResponse>, { state }: Session): Promise<void> {
    let lastState = state;
    try {
      for (;;) {
        const next = await watched.next();
        if (next.done === true) break;
        const { entry, state: after } = next.value;
        if (entry !== undefined) {
          const body = entry.envelope?.content?.body?.kind;
          if (body?.case === "delegate") {
            await this.#trust.note([body.value.targetAgent], this.#closed.signal);
          }
          await this.#send(frames.message(entry));
        }
        if (after !== lastState) await this.#send(frames.state(after));
        lastState = after;
      }
      for await (const { agentId, score, level } of this.#trust.moved(this.#closed.signal)) {
        await this.#send(frames.trust(agentId, score, level));
      }
      this.#close(CLOSE.DONE, "the session has ended");
    } catch (thrown) {
      await this.#tellError(thrown);
      this.#close(CLOSE.FAULT, "the session cannot be watched");
    } finally {
      // Not awaited: the generator ends when the call's signal aborts.
      watched.return?.()?.catch(() => {});
    }
  }

  async #append(envelope: Envelope): Promise<void> {
    if (envelope.sessionId !== this.#sessionId) {
      throw invalid("sessionId", "must be the session in the address");
    }
    // A holder proof is valid only once. So a client that authenticated with a proof adds a new proof to each message.
    const proof = this.#provesKey ? envelope.sender?.dpopProof : undefined;
    const options = this.#options("POST", "messages", proof);
    const appended = await this.#clients.aspSessions.appendMessage({ envelope }, options);
    await this.#send(frames.ack(envelope.messageId, appended));
  }

  get #provesKey(): boolean {
    return this.#credentials.dpop !== undefined || this.#received.has("dpop");
  }

  /**
   * Returns the options of a call with the client's credentials. A holder proof must name the HTTP method `htm` and the
   * session's address that ends in `place`, as for a plain HTTP request.
   */
  #options(htm: string, place: "ws" | "messages", proof: string | undefined): CallOptions {
    const received = new Headers(this.#received);
    const { authorization } = this.#credentials;
    if (authorization !== undefined) received.set("authorization", authorization);
    if (proof !== undefined) received.set("dpop", proof);
    const htu = `${this.#deps.publicUrl}/v1/asp/sessions/${this.#sessionId}/${place}`;
    return {
      headers: forwardWireHeaders(
        received,
        { htm, htu, edge: { address: this.#address, wire: "asp" } },
        this.#requestId,
        this.#certificate,
      ),
      signal: this.#closed.signal,
    };
  }

  async #tellError(thrown: unknown, messageId?: string): Promise<void> {
    if (this.#closed.signal.aborted) return;
    await this.#send(frames.error(toAspError(thrown, this.#requestId), messageId)).catch(() => {});
  }

  /**
   * Sends a frame, and waits until the connection accepts more data. Disconnects a client that reads nothing for
   * STALLED_MS.
   */
  #send(frame: JsonObject): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = this.#deps.timers.after(STALLED_MS, () => this.#peer.terminate());
      this.#peer.send(JSON.stringify(frame), (error) => {
        cancel();
        if (error) reject(error);
        else resolve();
      });
    });
  }

  #beatLater(): void {
    const { timers, clock } = this.#deps;
    this.#cancelTimer = timers.after(HEARTBEAT_MS, () => {
      if (this.#peer.readyState !== WebSocket.OPEN) return;
      this.#silentBeats += 1;
      if (this.#silentBeats > MAX_SILENT_BEATS)
        return this.#close(CLOSE.POLICY, "the client did not answer with pong");
      // Sends no heartbeat while the client has unread data. STALLED_MS then limits how long the client may read
      // nothing.
      if (this.#peer.bufferedAmount === 0) {
        this.#send(frames.heartbeat(formatTime(clock.now()))).catch(() => {});
      }
      this.#beatLater();
    });
  }

  #close(code: number, reason: string): void {
    this.#peer.close(code, reason);
  }
}
