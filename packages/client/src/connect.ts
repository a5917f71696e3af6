import type { JsonValue, MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import type { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { HolderSessionService } from "@depute/contracts/depute/tokens/v1/holder_session_service_pb";
import { type CryptoEngine, type Keypair, portableEngine } from "@depute/dct";
import { type AgentDraft, registerAgent } from "./agent.ts";
import { clientsOver, type DeputeClients } from "./clients.ts";
import { holderInterceptor } from "./holder.ts";
import { retrying, withRequestId } from "./idempotent.ts";
import { toValue } from "./json-value.ts";
import type { NarrowedToken } from "./narrow.ts";
import { sessionInterceptor } from "./proof-session.ts";
import { type Reviewer, type ReviewerOptions, startReviewer } from "./reviewer.ts";
import { SessionManager } from "./session-manager.ts";
import { TaskHandle } from "./task-handle.ts";
import { type Grant, mintToken, revokeToken } from "./tokens.ts";
import { startWorker, type Worker, type WorkerOptions } from "./worker.ts";

/** TLS options of Node.js (`tls.connect`) that a client may set. Certificates and keys are PEM, as text or bytes. */
export interface TlsOptions {
  /** Trusted root certificates. Default: the system's. */
  readonly ca?: string | Uint8Array;
  /** The client's own certificate, whose private key is `key`. Default: none. */
  readonly cert?: string | Uint8Array;
  readonly key?: string | Uint8Array;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface ConnectOptions {
  /** The caller's configured secret. It cannot be combined with `key`. */
  readonly secret?: string;
  /** The caller's key. Each attempt of a call carries a new proof of possession or, with `session`, a new code. */
  readonly key?: Keypair;
  /** A token whose last delegatee is the principal of `key`. */
  readonly token?: string;
  /** The platform's public address, if it differs from the address of the connection. */
  readonly publicUrl?: string;
  /** Whether to open a holder session: a single proof, then a cheap code for each call. Default: false. */
  readonly session?: boolean;
  /**
   * The platform's principal. Holder sessions that another key signed are refused. If absent, the signer is not
   * checked.
   */
  readonly platform?: string;
  readonly tls?: TlsOptions;
  /** The protocol. Default: `connect`. */
  readonly protocol?: "connect" | "grpc";
  /**
   * Maximum duration in milliseconds of an outage that a call waits for. Default: one minute. With 0 no call is
   * repeated.
   */
  readonly maxOutageMs?: number;
  /** The engine that signs proofs. Default: the portable engine; `nativeEngine` of `@depute/dct/native` is faster. */
  readonly engine?: CryptoEngine;
  /** Additional interceptors. They run for each attempt of a call. */
  readonly interceptors?: readonly Interceptor[];
}

/** Work to delegate. The members are those of depute.tasks.v1.TaskDraft, but with plain values. */
export interface Delegation extends Omit<MessageInitShape<typeof TaskDraftSchema>, "$typeName" | "input"> {
  readonly input?: JsonValue;
  /** Milliseconds until the task expires. Default: one hour. */
  readonly timeoutMs?: number;
  /**
   * Identifies this delegation across restarts of the program: the same id never creates a second task. Default: a new
   * id.
   */
  readonly requestId?: string;
}

/** Milliseconds of silence after which the client checks a connection with open calls by a ping. */
const PING_MS = 30_000;

/** Default of `maxOutageMs`. */
const MAX_OUTAGE_MS = 60_000;

/** A connection to a platform. */
export class Depute {
  /** Clients of all services. Calls get request ids, and are repeated during an outage if that is safe. */
  readonly services: DeputeClients;
  readonly #attempts: DeputeClients;
  readonly #maxOutageMs: number;
  readonly #close: () => void;

  /** Use {@link connect} instead. */
  constructor(
    transportWith: (interceptors: Interceptor[]) => Transport,
    options: ConnectOptions,
    close: () => void,
  ) {
    const { interceptors = [], maxOutageMs = MAX_OUTAGE_MS } = options;
    const attempt = [...credentials(options, transportWith), ...interceptors];
    this.services = clientsOver(transportWith([withRequestId, retrying(maxOutageMs), ...attempt]));
    this.#attempts = clientsOver(transportWith([withRequestId, ...attempt]));
    this.#maxOutageMs = maxOutageMs;
    this.#close = close;
  }

  /**
   * Creates a task.
   *
   * @throws ConnectError, whose reason {@link reasonOf} returns; TypeError for an input that is not JSON
   */
  async delegate({ input, timeoutMs, requestId = "", ...rest }: Delegation): Promise<TaskHandle> {
    const draft = {
      ...rest,
      ...(input !== undefined && { input: toValue(input) }),
      ...(timeoutMs !== undefined && { limits: { ...rest.limits, total: durationFromMs(timeoutMs) } }),
    } as MessageInitShape<typeof TaskDraftSchema>;
    const { task } = await this.services.tasks.createTask({ requestId, draft });
    return this.task(task?.id ?? "");
  }

  /** Returns a handle for the existing task with this id. */
  task(id: string): TaskHandle {
    return new TaskHandle(id, this.services, this.#maxOutageMs);
  }

  /** Registers an agent, and publishes its capabilities. */
  async register(agent: AgentDraft): Promise<void> {
    await registerAgent(this.services, agent);
  }

  /** Requests a token that the platform's root signs. */
  async mint(grant: Grant): Promise<NarrowedToken> {
    return mintToken(this.services, grant);
  }

  /**
   * Revokes a token's last block, and so every token that contains the block.
   *
   * @returns the number of the revocation in the platform's log; 0 while the platform cannot yet check that the revoker
   * may revoke the block
   */
  async revoke(token: NarrowedToken, revoker: Keypair): Promise<number> {
    return revokeToken(this.services, token, revoker);
  }

  /**
   * Takes tasks of an agent, and works on them until `stop` of the returned worker is called. Extends the agent's lease
   * meanwhile.
   */
  work(options: Omit<WorkerOptions, "calls" | "agents">): Worker {
    const { workers, agents } = this.#attempts;
    return startWorker({ ...options, calls: workers, agents });
  }

  /** Decides reviews until `stop` of the returned reviewer is called. */
  review(options: Omit<ReviewerOptions, "calls">): Reviewer {
    return startReviewer({ ...options, calls: this.#attempts.reviews });
  }

  /** Closes the connection, so that open calls fail. */
  close(): void {
    this.#close();
  }
}

/**
 * Creates a connection to a platform. The connection opens at the first call, and opens again after it has broken.
 *
 * @param url the address of the gateway, for example `https://depute.example.com`
 * @throws TypeError for an invalid address or options that exclude each other
 */
export function connect(url: string, options: ConnectOptions = {}): Depute {
  if (options.secret !== undefined && options.key !== undefined) {
    throw new TypeError("a call can have only one kind of credentials; pass either `secret` or `key`");
  }
  if (options.token !== undefined && options.key === undefined) {
    throw new TypeError("a token requires a proof of its holder; pass the holder's `key`");
  }
  const { origin, pathname } = new URL(url);
  const baseUrl = `${origin}${pathname}`.replace(/\/+$/, "");
  const { tls = {}, protocol = "connect", publicUrl = baseUrl } = options;
  const manager = new SessionManager(baseUrl, { pingIntervalMs: PING_MS }, tls as object);
  const common = { baseUrl, sessionManager: manager };
  const transportWith = (interceptors: Interceptor[]) =>
    protocol === "grpc"
      ? createGrpcTransport({ ...common, interceptors })
      : createConnectTransport({ ...common, httpVersion: "2", interceptors });
  return new Depute(transportWith, { ...options, publicUrl }, () => manager.abort());
}

function credentials(
  options: ConnectOptions,
  transportWith: (interceptors: Interceptor[]) => Transport,
): Interceptor[] {
  const { secret, key, token, publicUrl = "", platform, session = false, engine = portableEngine } = options;
  if (secret !== undefined) return [bearer(secret)];
  if (key === undefined) return [];
  const holder = { engine, keypair: key, publicUrl, ...(token !== undefined && { token }) };
  if (!session) return [holderInterceptor(holder)];
  const opener = createClient(HolderSessionService, transportWith([]));
  return [sessionInterceptor({ ...holder, ...(platform !== undefined && { platform }) }, opener)];
}

function bearer(secret: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${secret}`);
    return next(request);
  };
}
