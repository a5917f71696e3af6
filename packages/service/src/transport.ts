import type { ClientHttp2Session } from "node:http2";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { clientInterceptors } from "./interceptors/client.ts";

export interface ServiceTransportOptions {
  /** The service that is called, for errors. */
  service: string;
  /** The secret that the platform's processes share; empty when there is none. */
  internalSecret?: string;
  /** Whether spans are recorded. */
  tracing?: boolean;
  /** Milliseconds for a unary call that names no limit. Streams have none. */
  defaultTimeoutMs?: number;
}

/** A transport that holds a connection. */
export interface ServiceTransport extends Transport {
  /** Closes the connection; calls that are open fail. */
  close(): void;
}

const DEFAULT_TIMEOUT_MS = 15_000;
// A peer that vanished without a word is noticed by this, while calls are open.
const PING_INTERVAL_MS = 20_000;
const PING_TIMEOUT_MS = 10_000;
const IDLE_CONNECTION_MS = 15 * 60_000;

/** Calls another of Depute's processes: the Connect protocol in binary over clear-text HTTP/2. */
export function createServiceTransport(url: string, options: ServiceTransportOptions): ServiceTransport {
  const { service, internalSecret = "", tracing = false, defaultTimeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const sessionManager = new QuietSessionManager(url, {
    pingIntervalMs: PING_INTERVAL_MS,
    pingTimeoutMs: PING_TIMEOUT_MS,
    idleConnectionTimeoutMs: IDLE_CONNECTION_MS,
  });
  const transport = createConnectTransport({
    baseUrl: url,
    httpVersion: "2",
    sessionManager,
    interceptors: clientInterceptors({ service, internalSecret, tracing }),
    // Within a machine or a rack, compressing costs more than it saves.
    acceptCompression: [],
  });
  return {
    // The library's own default timeout would also end streams.
    unary: (method, signal, timeoutMs, header, input, values) =>
      transport.unary(method, signal, timeoutMs ?? defaultTimeoutMs, header, input, values),
    stream: (method, signal, timeoutMs, header, input, values) =>
      transport.stream(method, signal, timeoutMs, header, input, values),
    close: () => sessionManager.abort(),
  };
}

/**
 * The library listens for the first error of a connection only. A peer that writes what is no HTTP/2 raises more, and an
 * error without a listener ends the process.
 */
class QuietSessionManager extends Http2SessionManager {
  readonly #known = new WeakSet<ClientHttp2Session>();

  override async request(
    ...call: Parameters<Http2SessionManager["request"]>
  ): ReturnType<Http2SessionManager["request"]> {
    const stream = await super.request(...call);
    const { session } = stream;
    if (session !== undefined && !this.#known.has(session as ClientHttp2Session)) {
      this.#known.add(session as ClientHttp2Session);
      session.on("error", () => {});
    }
    return stream;
  }
}
