import { type Client, createClient } from "@connectrpc/connect";
import { PLATFORM_SERVICES } from "@depute/core/services";
import { SERVICES, type ServiceDeps } from "@depute/service";

const { registry, tasks, tokens, verifier } = PLATFORM_SERVICES;
type Called = typeof registry & typeof tasks & typeof tokens & typeof verifier;

/** The clients through which the gateway's wires call the platform's services, by service name. */
export type Clients = { readonly [Name in keyof Called]: Client<Called[Name]> };

export function createClients(connect: ServiceDeps["connect"]): Clients {
  const clients = SERVICES.flatMap((name) => {
    const transport = connect(name);
    return Object.entries(PLATFORM_SERVICES[name]).map(([word, service]) => [
      word,
      createClient(service, transport),
    ]);
  });
  return Object.fromEntries(clients) as Clients;
}
