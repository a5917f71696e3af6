import type { ClientHttp2Session, SecureClientSessionOptions } from "node:http2";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { clientInterceptors } from "./interceptors/client.ts";

export interface ServiceTransportOptions {
  /** The name of the called service, for errors. */
  service: string;
  /** The secret that the platform's processes share; empty when there is none. */
  internalSecret?: string;
  /** Whether spans are recorded. */
  tracing?: boolean;
  /** Milliseconds that a unary call may take when the caller names no limit. Streams have no limit. */
  defaultTimeoutMs?: number;
  /** Returns the context of a new connection to an https address; the system's authorities when absent. */
  secureContext?: () => SecureClientSessionOptions["secureContext"];
}

/** A transport that keeps a connection open. */
export interface ServiceTransport extends Transport {
  /** Closes the connection. Open calls fail. */
  close(): void;
}

const DEFAULT_TIMEOUT_MS = 15_000;
// Milliseconds between pings while calls are open. Pings detect a peer that vanished without closing its
// connection.
const PING_INTERVAL_MS = 20_000;
const PING_TIMEOUT_MS = 10_000;
const IDLE_CONNECTION_MS = 15 * 60_000;

/** Calls another of Depute's processes: the Connect protocol in binary over HTTP/2, with TLS for https addresses. */
export function createServiceTransport(url: string, options: ServiceTransportOptions): ServiceTransport {
  const { service, internalSecret = "", tracing = false, defaultTimeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const pings = {
    pingIntervalMs: PING_INTERVAL_MS,
    pingTimeoutMs: PING_TIMEOUT_MS,
    idleConnectionTimeoutMs: IDLE_CONNECTION_MS,
  };
  const sessionManager = new QuietSessionManager(url, pings, sessionOptions(options));
  const transport = createConnectTransport({
    baseUrl: url,
    httpVersion: "2",
    sessionManager,
    interceptors: clientInterceptors({ service, internalSecret, tracing }),
    // Calls are not compressed: within a machine or a rack, compression costs more than it saves.
    acceptCompression: [],
  });
  return {
    // The default timeout is applied here, because the library's own one would also end streams.
    unary: (method, signal, timeoutMs, header, input, values) =>
      transport.unary(method, signal, timeoutMs ?? defaultTimeoutMs, header, input, values),
    stream: (method, signal, timeoutMs, header, input, values) =>
      transport.stream(method, signal, timeoutMs, header, input, values),
    close: () => sessionManager.abort(),
  };
}

/** Each new connection reads the getter, so that changed certificates are used. */
function sessionOptions({ secureContext }: ServiceTransportOptions): SecureClientSessionOptions | undefined {
  if (secureContext === undefined) return undefined;
  return {
    get secureContext() {
      return secureContext();
    },
  };
}

/**
 * The library listens only for the first error of a connection. A peer that sends invalid HTTP/2 raises further
 * errors, and an error without a listener ends the process.
 */
class QuietSessionManager extends Http2SessionManager {
  readonly #knownSessions = new WeakSet<ClientHttp2Session>();

  override async request(
    ...call: Parameters<Http2SessionManager["request"]>
  ): ReturnType<Http2SessionManager["request"]> {
    const stream = await super.request(...call);
    const { session } = stream;
    if (session !== undefined && !this.#knownSessions.has(session as ClientHttp2Session)) {
      this.#knownSessions.add(session as ClientHttp2Session);
      session.on("error", () => {});
    }
    return stream;
  }
}
