import type { IncomingMessage } from "node:http";
import type { JsonObject } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import type { Envelope } from "@depute/contracts/asp/v0/envelope_pb";
import type { Session } from "@depute/contracts/asp/v0/session_pb";
import type { WatchSessionResponse } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { DeputeError, ErrorReason, formatTime, invalid } from "@depute/core";
import { forwardWireHeaders, refuseUpgrade, requestIdFrom, type UpgradeRoute } from "@depute/service";
import { WebSocket, WebSocketServer } from "ws";
import type { Clients } from "../../src/clients.ts";
import type { WireDeps } from "../../src/json-rpc-route.ts";
import { toAspError } from "./errors.ts";
import { type ClientFrame, frames, MAX_FRAME_BYTES, readFrame } from "./frames.ts";
import { TrustWatch } from "./trust-watch.ts";

/** Where sessions are live. */
export const SOCKET_PATH = "/v1/asp/sessions/{id}/ws";
/** Milliseconds that a client has to say who it is. */
export const AUTH_MS = 10_000;
/** Milliseconds between heartbeats, and how many of them a client may leave without an answer. */
export const HEARTBEAT_MS = 15_000;
const MAX_SILENT_BEATS = 3;
/** Milliseconds that a client may leave what was sent unread before it is cut off. */
const STALLED_MS = 60_000;
/** Frames of a client that wait for those before them. */
const MAX_WAITING = 128;

/** Why connections are closed: RFC 6455 7.4.1, and 4001 of ASP transports "WebSocket". */
const CLOSE = {
  DONE: 1000,
  AWAY: 1001,
  NOT_TEXT: 1003,
  POLICY: 1008,
  FAULT: 1011,
  NOT_LET_IN: 4001,
} as const;

/**
 * Live sessions over WebSocket: a client says who it is, is told the messages of a session in order, and sends its own.
 * (ASP transports "WebSocket")
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
  #cancelTimer: () => void = () => {};

  constructor(
    peer: WebSocket,
    { headers }: IncomingMessage,
    sessionId: string,
    clients: Clients,
    deps: WireDeps,
  ) {
    this.#peer = peer;
    this.#received = new Headers();
    for (const name of ["authorization", "dpop", "x-api-key", "traceparent", "tracestate"]) {
      const value = headers[name];
      if (typeof value === "string") this.#received.set(name, value);
    }
    this.#requestId = requestIdFrom(undefined);
    this.#sessionId = sessionId;
    this.#clients = clients;
    this.#deps = deps;
    this.#trust = new TrustWatch(clients, deps.timers);
  }

  open(): void {
    const { stopping, timers } = this.#deps;
    const goAway = () => this.#close(CLOSE.AWAY, "the server is shutting down");
    stopping.addEventListener("abort", goAway, { once: true });
    this.#peer.on("close", () => {
      stopping.removeEventListener("abort", goAway);
      this.#cancelTimer();
      this.#closed.abort();
    });
    this.#peer.on("error", (error) => this.#deps.log.debug({ err: error }, "a live session broke"));
    this.#peer.on("message", (data: Buffer, isBinary: boolean) => this.#take(data, isBinary));
    this.#cancelTimer = timers.after(AUTH_MS, () => this.#close(CLOSE.NOT_LET_IN, "nobody said who it is"));
  }

  /** Frames are seen to one after the other, and no more are read than can be. */
  #take(data: Buffer, isBinary: boolean): void {
    this.#silentBeats = 0;
    if (isBinary || this.#waiting >= MAX_WAITING) {
      if (isBinary) this.#close(CLOSE.NOT_TEXT, "frames are JSON text");
      else this.#close(CLOSE.POLICY, "too many frames at once");
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
      if (frame.type === "auth") return await this.#letIn(frame);
      messageId = frame.envelope.messageId;
      if (!this.#isLetIn) {
        throw new DeputeError(ErrorReason.UNAUTHENTICATED, "the first frame is auth");
      }
      await this.#append(frame.envelope);
    } catch (thrown) {
      await this.#tellError(thrown, messageId);
      if (!this.#isLetIn) this.#close(CLOSE.NOT_LET_IN, "authentication failed");
    }
  }

  /** Watches the session as the client says to be: that it is let in is what the watch begins with. */
  async #letIn(frame: ClientFrame & { type: "auth" }): Promise<void> {
    if (this.#isLetIn) throw invalid("type", "auth comes once");
    this.#credentials = frame;
    const options = this.#options("GET", "ws", frame.dpop);
    const request = {
      sessionId: this.#sessionId,
      afterOrdinal: frame.sinceSequence,
      tellState: true,
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
      if (!this.#closed.signal.aborted) this.#deps.log.debug({ err: error }, "a live session broke");
    });
  }

  async #tellAll(watched: AsyncIterator<WatchSessionResponse>, { state }: Session): Promise<void> {
    let told = state;
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
        if (after !== told) await this.#send(frames.state(after));
        told = after;
      }
      for await (const { agentId, score, level } of this.#trust.moved(this.#closed.signal)) {
        await this.#send(frames.trust(agentId, score, level));
      }
      this.#close(CLOSE.DONE, "the session has ended");
    } catch (thrown) {
      await this.#tellError(thrown);
      this.#close(CLOSE.FAULT, "the session cannot be watched");
    } finally {
      // Not waited for: the call's signal ends it.
      watched.return?.()?.catch(() => {});
    }
  }

  async #append(envelope: Envelope): Promise<void> {
    if (envelope.sessionId !== this.#sessionId) {
      throw invalid("sessionId", "is not the session of the address");
    }
    // A proof counts once, so who is known by one brings another with every message: the message's own.
    const proof = this.#provesKey ? envelope.sender?.dpopProof : undefined;
    const options = this.#options("POST", "messages", proof);
    const appended = await this.#clients.aspSessions.appendMessage({ envelope }, options);
    await this.#send(frames.ack(envelope.messageId, appended));
  }

  get #provesKey(): boolean {
    return this.#credentials.dpop !== undefined || this.#received.has("dpop");
  }

  /** The client's credentials, for a call in the place of a request to an address of the session. */
  #options(htm: string, place: "ws" | "messages", proof: string | undefined): CallOptions {
    const received = new Headers(this.#received);
    const { authorization } = this.#credentials;
    if (authorization !== undefined) received.set("authorization", authorization);
    if (proof !== undefined) received.set("dpop", proof);
    const htu = `${this.#deps.publicUrl}/v1/asp/sessions/${this.#sessionId}/${place}`;
    return {
      headers: forwardWireHeaders(received, { htm, htu }, this.#requestId),
      signal: this.#closed.signal,
    };
  }

  async #tellError(thrown: unknown, messageId?: string): Promise<void> {
    if (this.#closed.signal.aborted) return;
    await this.#send(frames.error(toAspError(thrown, this.#requestId), messageId)).catch(() => {});
  }

  /** Sends, and waits until the client has room for more; one that reads nothing for a minute is cut off. */
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
      if (this.#silentBeats > MAX_SILENT_BEATS) return this.#close(CLOSE.POLICY, "no pong");
      // What waits to be read says as well that the connection is there.
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
