/** The address of an agent's own NEKTE server. */
export interface Endpoint {
  readonly protocol: "http" | "grpc";
  /** The URL to call. For a gRPC endpoint, the http or https URL of its host. */
  readonly url: string;
  /** Host and port as the client's Host header or `:authority` names them. */
  readonly authority: string;
  readonly isSecure: boolean;
  /** The agent's id at a gRPC endpoint that serves several agents; empty if the endpoint serves one agent. */
  readonly agentId: string;
}

const GRPC: Readonly<Record<string, string>> = { "grpc:": "http:", "grpcs:": "https:" };
const PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/**
 * Parses an agent's endpoint: `http(s)://host[:port]/path`, or `grpc(s)://host:port`. Depute's choice: the path of a
 * gRPC endpoint is the agent's id. The client sends this id in the same metadata that the platform's own gRPC address
 * reads.
 *
 * @returns undefined for any other address
 */
export function readEndpoint(address: string): Endpoint | undefined {
  if (!URL.canParse(address)) return undefined;
  const { protocol, host, pathname } = new URL(address);
  const carrier = GRPC[protocol];
  if (carrier === undefined && PORTS[protocol] === undefined) return undefined;
  const isSecure = (carrier ?? protocol) === "https:";
  if (carrier === undefined)
    return { protocol: "http", url: address, authority: host, isSecure, agentId: "" };
  // Parses the address again as http or https, because URL normalizes host names only for these schemes.
  const plain = address.replace(/^grpcs?:/i, carrier);
  if (!URL.canParse(plain)) return undefined;
  const { hostname, port } = new URL(plain);
  const agentId = decoded(pathname.replace(/^\//, ""));
  if (agentId === undefined) return undefined;
  const authority = `${hostname}:${port || PORTS[carrier]}`;
  return { protocol: "grpc", url: `${carrier}//${authority}`, authority, isSecure, agentId };
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
