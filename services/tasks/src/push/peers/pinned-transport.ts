import { isIP } from "node:net";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { DeputeError } from "@depute/core";
import type { Outbound } from "@depute/service";
import type { Endpoint } from "../rules/endpoint.ts";
import { NOT_ALLOWED, PeerFault, REFUSED, TOO_MUCH, UNREACHABLE } from "../rules/refusal.ts";
import { CALL_MS } from "./peer.ts";

/** Milliseconds between keepalive pings on a silent connection. */
const KEEPALIVE_MS = 20_000;

/**
 * Connects to a gRPC endpoint at the IP address that `outbound` has checked. The connection resolves no host name
 * again, and uses no proxy from the environment.
 *
 * @throws PeerFault ADDRESS_NOT_ALLOWED, ENDPOINT_UNREACHABLE
 */
export async function pinnedTransport(
  outbound: Outbound,
  { url, authority, isSecure }: Pick<Endpoint, "url" | "authority" | "isSecure">,
): Promise<Transport & { close(): void }> {
  const { address, family } = await outbound.pin(url).catch((thrown: unknown) => {
    throw faultOfTransport(thrown);
  });
  const { hostname } = new URL(url);
  const { port } = new URL(`http://${authority}`);
  const host = family === 6 ? `[${address}]` : address;
  // The import is dynamic, so that a process without gRPC endpoints does not load the library.
  const { createGrpcJsTransport } = await import("@depute/grpc-js");
  return createGrpcJsTransport(`ipv${family}:${host}:${port || (isSecure ? "443" : "80")}`, {
    isSecure,
    channel: {
      "grpc.default_authority": authority,
      "grpc.enable_http_proxy": 0,
      "grpc.service_config_disable_resolution": 1,
      "grpc.keepalive_time_ms": KEEPALIVE_MS,
      "grpc.max_reconnect_backoff_ms": CALL_MS,
      // The certificate must be for the host name. If the URL has an IP address instead, the certificate must
      // be for that address.
      ...(isSecure && !isAddress(hostname) ? { "grpc.ssl_target_name_override": hostname } : {}),
    },
  });
}

/** Whether a URL's host is an IP address. */
function isAddress(hostname: string): boolean {
  return isIP(hostname.replace(/^\[(.*)\]$/, "$1")) !== 0;
}

const PASSING: ReadonlySet<Code> = new Set([
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Internal,
  Code.Unknown,
  Code.Aborted,
  Code.Canceled,
]);

/** Converts the error of a gRPC call or its connection to a fault. The gRPC status decides the kind of fault. */
export function faultOfTransport(thrown: unknown): PeerFault {
  if (thrown instanceof PeerFault) return thrown;
  if (thrown instanceof DeputeError) return new PeerFault(NOT_ALLOWED, thrown.message);
  if (!(thrown instanceof ConnectError)) {
    const why = thrown instanceof Error ? thrown.message : "no answer";
    return new PeerFault(UNREACHABLE, `the endpoint cannot be reached: ${why}`);
  }
  const { code, rawMessage } = thrown;
  if (code === Code.ResourceExhausted) return new PeerFault(TOO_MUCH, rawMessage);
  const refusal = PASSING.has(code) ? UNREACHABLE : REFUSED;
  return new PeerFault(refusal, `the endpoint answered ${Code[code]}: ${rawMessage}`);
}
