/** Where an agent answers NEKTE itself. */
export interface Endpoint {
  readonly protocol: "http" | "grpc";
  /** What is called: of a gRPC endpoint the http or https URL of its host. */
  readonly url: string;
  /** `host:port`, as a client names it. */
  readonly authority: string;
  readonly isSecure: boolean;
  /** The agent at a gRPC endpoint that serves several; empty where there is one. */
  readonly agentId: string;
}

const GRPC: Readonly<Record<string, string>> = { "grpc:": "http:", "grpcs:": "https:" };
const PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/**
 * Reads an agent's endpoint: `http(s)://host[:port]/path`, or `grpc(s)://host:port`. Depute's choice: the path of a gRPC
 * endpoint names the agent, which then goes along as the metadata that the platform's own gRPC address takes.
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
  // As a plain address it is parsed again, so that the host is read as hosts are.
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
