import type { ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Http2SessionManager } from "@connectrpc/connect-node";
import type { Timers } from "@depute/core";

/** Milliseconds in which a replica must accept a connection, or answer a ping on an idle connection. */
const CONNECT_LIMIT_MS = 1_000;
/** Milliseconds between two checks whether a failed replica is ready, and from its failure to the first check. */
const PROBE_INTERVAL_MS = 250;
/** Milliseconds in which a failed replica must answer `GET /readyz`. */
const PROBE_LIMIT_MS = 1_000;

/** The members of a session manager that a Connect transport uses. */
export type Sessions = Pick<Http2SessionManager, "authority" | "request" | "notifyResponseByteRead">;

interface Replica {
  readonly sessions: Http2SessionManager;
  /** Whether the replica has failed, and no later check has found the replica ready. */
  hasFailed: boolean;
}

export interface ReplicaSessionsOptions {
  /** Creates the connection to one replica. The connection calls `onBroken` when it breaks. */
  readonly connect: (url: string, onBroken: () => void) => Http2SessionManager;
  readonly timers: Timers;
}

/**
 * The connections to the replicas of a service. Requests go to the replicas round-robin. If the connection to a replica
 * does not open or breaks, the replica gets no requests until it answers `GET /readyz` with 200. A request that no
 * ready replica accepts also tries the failed replicas.
 */
export class ReplicaSessions implements Sessions {
  /**
   * The origin of the first replica. Connect compares this origin with the base URL of the transport. Each request
   * names the origin of the replica that gets the request.
   */
  readonly authority: string;
  readonly #replicas: readonly Replica[];
  readonly #timers: Timers;
  #next: number;
  #isClosed = false;

  /**
   * @param urls the addresses of the replicas
   * @param first the index of the replica that gets the first request
   */
  constructor(urls: readonly string[], first: number, { connect, timers }: ReplicaSessionsOptions) {
    this.authority = new URL(urls[0] ?? "").origin;
    this.#timers = timers;
    this.#next = first;
    this.#replicas = urls.map((url) => {
      const replica: Replica = {
        sessions: connect(url, () => this.#failed(replica)),
        hasFailed: false,
      };
      return replica;
    });
  }

  /**
   * Sends a request to the next replica that accepts the connection.
   *
   * @throws the error of the last replica, if no replica accepts the connection; then the request was not sent
   */
  async request(method: string, path: string, headers: OutgoingHttpHeaders): Promise<ClientHttp2Stream> {
    let failure: unknown;
    for (const replica of this.#inTurn()) {
      const { sessions } = replica;
      const send = () => sessions.request(method, path, headers, {});
      // An open connection needs no time limit here, because pings check it while calls are open.
      const sent = sessions.state() === "open" ? send() : this.#within(CONNECT_LIMIT_MS, send);
      const stream = await sent.catch((error: unknown) => {
        failure = error;
      });
      if (stream !== undefined) return stream;
      this.#failed(replica);
    }
    throw failure;
  }

  notifyResponseByteRead(stream: ClientHttp2Stream): void {
    for (const { sessions } of this.#replicas) sessions.notifyResponseByteRead(stream);
  }

  close(): void {
    this.#isClosed = true;
    for (const { sessions } of this.#replicas) sessions.abort();
  }

  /** Returns the ready replicas in round-robin order, and then the failed replicas in this order. */
  #inTurn(): readonly Replica[] {
    const count = this.#replicas.length;
    const first = this.#next++ % count;
    const turn = this.#replicas.map((_, i) => this.#replicas[(first + i) % count] as Replica);
    return [...turn.filter(({ hasFailed }) => !hasFailed), ...turn.filter(({ hasFailed }) => hasFailed)];
  }

  #failed(replica: Replica): void {
    if (replica.hasFailed || this.#isClosed) return;
    replica.hasFailed = true;
    this.#probeLater(replica);
  }

  #probeLater(replica: Replica): void {
    this.#timers.after(PROBE_INTERVAL_MS, () => {
      this.#probe(replica)
        .catch(() => false)
        .then((isReady) => {
          if (this.#isClosed) return;
          if (isReady) replica.hasFailed = false;
          else this.#probeLater(replica);
        }, noError);
    });
  }

  /** Resolves to whether the replica answers that it is ready. */
  #probe({ sessions }: Replica): Promise<boolean> {
    return this.#within(PROBE_LIMIT_MS, async (ended) => {
      const stream = await sessions.request("GET", "/readyz", {}, {});
      ended.addEventListener("abort", () => stream.destroy(), { once: true });
      stream.on("error", noError);
      stream.resume();
      stream.end();
      return new Promise<boolean>((resolve) => {
        stream.once("response", (headers) => resolve(headers[":status"] === 200));
        stream.once("close", () => resolve(false));
      });
    });
  }

  /**
   * Settles as `work` does, or rejects after `ms` milliseconds. After `ms` milliseconds, the signal also aborts, and a
   * stream that opens later is destroyed.
   */
  #within<T>(ms: number, work: (ended: AbortSignal) => Promise<T>): Promise<T> {
    const ending = new AbortController();
    return new Promise<T>((resolve, reject) => {
      const cancel = this.#timers.after(ms, () => {
        ending.abort();
        reject(new ConnectError("the replica does not answer", Code.Unavailable));
      });
      work(ending.signal).then(
        (value) => {
          cancel();
          if (!ending.signal.aborted) return resolve(value);
          if (isStream(value)) value.on("error", noError).destroy();
        },
        (error: unknown) => {
          cancel();
          reject(error);
        },
      );
    });
  }
}

function isStream(value: unknown): value is ClientHttp2Stream {
  return typeof value === "object" && value !== null && "rstCode" in value;
}

function noError(): void {}
