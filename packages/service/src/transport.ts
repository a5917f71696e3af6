import type { SecureClientSessionOptions } from "node:http2";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionManager } from "@depute/client/transport";
import type { Random, Timers } from "@depute/core";
import { clientInterceptors } from "./interceptors/client.ts";
import { type InternalSecrets, NO_INTERNAL_SECRETS } from "./internal-secrets.ts";
import { ReplicaSessions, type Sessions } from "./replica-sessions.ts";
import { faultOfServerName } from "./tls/server-names.ts";

export interface ServiceTransportOptions {
  /** The name of the called service, for errors. */
  service: string;
  /** The secrets that the platform's processes share; none when absent. */
  internalSecrets?: Pick<InternalSecrets, "sent">;
  /** Whether the transport records a span for each call; false when absent. */
  tracing?: boolean;
  /** Timeout in milliseconds of a unary call whose caller sets none. Streams have no default timeout. */
  defaultTimeoutMs?: number;
  /**
   * Returns the TLS context of a new connection to an https address. If this function is absent, the connection trusts
   * the system's authorities.
   */
  secureContext?: () => SecureClientSessionOptions["secureContext"];
}

/** A transport that keeps a connection open. */
export interface ServiceTransport extends Transport {
  /** Closes the connection. Open calls fail. */
  close(): void;
}

const DEFAULT_TIMEOUT_MS = 15_000;
// Pings are sent while calls are open. They detect a peer that is unreachable although its connection was not closed.
const PINGS = { pingIntervalMs: 20_000, pingTimeoutMs: 10_000, idleConnectionTimeoutMs: 15 * 60_000 };
// Connections to replicas detect a stopped peer sooner, because another replica can serve the call.
const PINGS_OF_REPLICAS = { ...PINGS, pingIntervalMs: 1_000, pingTimeoutMs: 2_000 };

/**
 * Creates a transport to another process of Depute. It uses the Connect protocol in binary over HTTP/2, with TLS for
 * https addresses.
 */
export function createServiceTransport(url: string, options: ServiceTransportOptions): ServiceTransport {
  const { service, internalSecrets = NO_INTERNAL_SECRETS, tracing = false } = options;
  const sessionManager = new SessionManager(url, PINGS, sessionOptions(options));
  return transportOver(url, sessionManager, {
    options,
    interceptors: clientInterceptors({ service, internalSecrets, tracing, replicas: 1 }),
    close: () => sessionManager.abort(),
  });
}

/**
 * Creates a transport that calls the replicas of a service round-robin. A call that did not reach a replica goes to the
 * next replica. A call that reached a dead or draining replica is repeated only if `isRepeatable` allows it and the
 * call has no holder proof.
 *
 * @param urls the addresses of the replicas, at least one
 */
export function createReplicasTransport(
  urls: readonly string[],
  options: ServiceTransportOptions & { readonly timers: Timers; readonly random: Random },
): ServiceTransport {
  const [only = ""] = urls;
  if (urls.length <= 1) return createServiceTransport(only, options);
  const { service, internalSecrets = NO_INTERNAL_SECRETS, tracing = false, timers, random } = options;
  const http2Options = sessionOptions(options);
  const sessions = new ReplicaSessions(urls, Math.floor(random() * urls.length), {
    timers,
    connect: (url, onBroken) => new SessionManager(url, { ...PINGS_OF_REPLICAS }, http2Options, onBroken),
  });
  return transportOver(only, sessions, {
    options,
    interceptors: clientInterceptors({ service, internalSecrets, tracing, replicas: urls.length }),
    close: () => sessions.close(),
  });
}

interface TransportParts {
  readonly options: ServiceTransportOptions;
  readonly interceptors: Interceptor[];
  readonly close: () => void;
}

function transportOver(
  baseUrl: string,
  sessionManager: Sessions,
  { options: { defaultTimeoutMs = DEFAULT_TIMEOUT_MS }, interceptors, close }: TransportParts,
): ServiceTransport {
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: "2",
    sessionManager,
    interceptors,
    // Responses are not compressed: within a machine or a rack, compression costs more than it saves.
    acceptCompression: [],
  });
  return {
    // The default timeout is applied here, because Connect's default timeout would also end streams.
    unary: (method, signal, timeoutMs, header, input, values) =>
      transport.unary(method, signal, timeoutMs ?? defaultTimeoutMs, header, input, values),
    stream: (method, signal, timeoutMs, header, input, values) =>
      transport.stream(method, signal, timeoutMs, header, input, values),
    close,
  };
}

/** Returns session options that read the secure context for each new connection, because certificates can change. */
function sessionOptions({ secureContext }: ServiceTransportOptions): SecureClientSessionOptions | undefined {
  if (secureContext === undefined) return undefined;
  return {
    get secureContext() {
      return secureContext();
    },
    checkServerIdentity: faultOfServerName,
  };
}

/**
 * Returns a transport to each of several replicas, and adds these transports to `opened`. Undefined for a single
 * address.
 */
export function transportsTo(
  urls: readonly string[],
  call: ServiceTransportOptions,
  opened: ServiceTransport[],
): readonly Transport[] | undefined {
  if (urls.length === 1) return undefined;
  const transports = urls.map((url) => createServiceTransport(url, call));
  opened.push(...transports);
  return transports;
}
