import type { A2aAddress } from "../rules/agent-address.ts";
import { readEndpoint } from "../rules/endpoint.ts";
import { NOT_ALLOWED, PeerFault } from "../rules/refusal.ts";
import { a2aGrpcPeer } from "./a2a-grpc.ts";
import { a2aHttpPeer } from "./a2a-http.ts";
import { a2aJsonRpcPeer } from "./a2a-json-rpc.ts";
import type { A2aPeer } from "./a2a-peer.ts";
import type { PeerOutbound } from "./peer.ts";
import { originOf, type PeerCredentials } from "./peers.ts";

/**
 * Connects to an A2A agent.
 *
 * @throws PeerFault ADDRESS_NOT_ALLOWED, ENDPOINT_UNREACHABLE
 */
export type A2aPeerAt = (address: A2aAddress) => Promise<A2aPeer>;

/** Returns the function that connects to A2A agents, with the credentials of each origin. */
export function a2aPeersOver(outbound: PeerOutbound, credentials: PeerCredentials): A2aPeerAt {
  return async (address) => {
    const presented = credentials.get(originOf(address.url)) ?? {};
    switch (address.binding) {
      case "JSONRPC":
        return a2aJsonRpcPeer(outbound, address, presented);
      case "HTTP+JSON":
        return a2aHttpPeer(outbound, address, presented);
      case "GRPC": {
        const endpoint = readEndpoint(address.url);
        if (endpoint === undefined)
          throw new PeerFault(NOT_ALLOWED, "the URL on the agent's card is not a gRPC address");
        return a2aGrpcPeer(outbound.calls, address, endpoint, presented);
      }
    }
  };
}
