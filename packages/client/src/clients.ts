import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { PLATFORM_SERVICES } from "@depute/core/services";

/** The platform's services, by the names that the SDK gives them. */
export const SERVICES = {
  ...PLATFORM_SERVICES.registry,
  ...PLATFORM_SERVICES.tasks,
  ...PLATFORM_SERVICES.tokens,
  ...PLATFORM_SERVICES.verifier,
  ...PLATFORM_SERVICES.gateway,
} as const;

/** One client for each of the platform's services. */
export type DeputeClients = {
  readonly [Name in keyof typeof SERVICES]: Client<(typeof SERVICES)[Name]>;
};

/** Clients over a transport of the caller's own: Connect, gRPC, grpc-js, in process. */
export function clientsOver(transport: Transport): DeputeClients {
  const clients = Object.entries(SERVICES).map(([name, service]) => [name, createClient(service, transport)]);
  return Object.fromEntries(clients) as DeputeClients;
}

/**
 * Clients of the gateway at `url`, over the Connect protocol and HTTP/2.
 *
 * @param interceptors what every call passes, e.g. `holderInterceptor`
 */
export function connectTo(url: string, interceptors: Interceptor[] = []): DeputeClients {
  return clientsOver(createConnectTransport({ baseUrl: url, httpVersion: "2", interceptors }));
}
