import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { PLATFORM_SERVICES } from "@depute/core/services";
import { SessionManager } from "./session-manager.ts";
import { failuresAsUnavailable } from "./transport-failures.ts";

/** The platform's services by their names in this SDK. */
export const SERVICES = {
  ...PLATFORM_SERVICES.registry,
  ...PLATFORM_SERVICES.tasks,
  ...PLATFORM_SERVICES.tokens,
  ...PLATFORM_SERVICES.verifier,
  ...PLATFORM_SERVICES.gateway,
} as const;

/** One client for each service of the platform. */
export type DeputeClients = {
  readonly [Name in keyof typeof SERVICES]: Client<(typeof SERVICES)[Name]>;
};

/** Creates clients over any transport: Connect, gRPC, grpc-js or in process. Failures of the transport are UNAVAILABLE. */
export function clientsOver(transport: Transport): DeputeClients {
  const checked = failuresAsUnavailable(transport);
  const clients = Object.entries(SERVICES).map(([name, service]) => [name, createClient(service, checked)]);
  return Object.fromEntries(clients) as DeputeClients;
}

/**
 * Creates clients of the gateway at `url`, over the Connect protocol and HTTP/2.
 *
 * @param interceptors apply to every call, for example `holderInterceptor`
 */
export function connectTo(url: string, interceptors: Interceptor[] = []): DeputeClients {
  const sessionManager = new SessionManager(url);
  return clientsOver(
    createConnectTransport({ baseUrl: url, httpVersion: "2", sessionManager, interceptors }),
  );
}
