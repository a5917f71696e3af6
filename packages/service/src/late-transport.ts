import type { Transport } from "@connectrpc/connect";
import { unavailable } from "./interceptors/client.ts";

/** A transport to a service of this process that may not have started yet; until then calls get UNAVAILABLE. */
export function createLateTransport(service: string, find: () => Transport | undefined): Transport {
  const target = () => {
    const transport = find();
    if (transport === undefined) throw unavailable(service);
    return transport;
  };
  return {
    unary: async (...call) => target().unary(...call),
    stream: async (...call) => target().stream(...call),
  };
}
