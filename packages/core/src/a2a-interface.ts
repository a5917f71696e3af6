/** The bindings over which the platform calls A2A agents, by the names that agents' cards use. (A2A 5) */
export const A2A_BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
export type A2aBinding = (typeof A2A_BINDINGS)[number];

/** An address of an A2A agent that the platform can call. */
export interface A2aInterface {
  readonly binding: A2aBinding;
  /** An http or https URL; for gRPC `grpc://host:port` in clear text, or `grpcs://host:port` with TLS. */
  readonly url: string;
  /** The value that each request repeats in its field `tenant`; empty for none. */
  readonly tenant: string;
}

/** An entry of `supported_interfaces` in an agent's card. (A2A 4.4.6) */
interface CardInterface {
  readonly url: string;
  readonly protocolBinding: string;
  readonly tenant: string;
  readonly protocolVersion: string;
}

/** Maximum number of entries of a card's `supported_interfaces` that the platform reads. */
export const MAX_A2A_INTERFACES = 16;

/** Maximum length of an interface's URL, in characters. */
const MAX_URL = 1024;

/**
 * Returns the first address in a card that the platform can call. Such an address has the version 1.x, a binding of
 * {@link A2A_BINDINGS}, and a valid URL of at most 1,024 characters. A card lists its addresses in the agent's order of
 * preference. (A2A 8.3.2)
 *
 * @returns undefined if the platform can call no address of the card
 */
export function a2aInterfaceOf(interfaces: readonly CardInterface[]): A2aInterface | undefined {
  for (const { url, protocolBinding, tenant, protocolVersion } of interfaces.slice(0, MAX_A2A_INTERFACES)) {
    const binding = A2A_BINDINGS.find((each) => each === protocolBinding);
    if (binding === undefined || !/^1(\.\d+){0,2}$/.test(protocolVersion) || url.length > MAX_URL) continue;
    const address = binding === "GRPC" ? grpcUrl(url) : httpUrl(url);
    if (address !== undefined) return { binding, url: address, tenant };
  }
  return undefined;
}

function httpUrl(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined;
  const { username, password, hash } = new URL(text);
  return username === "" && password === "" && hash === "" ? text : undefined;
}

/**
 * Reads the address of a gRPC interface; undefined for a text that is not an address. A2A writes such an address as
 * `host:port`, which does not state whether the connection uses TLS. Depute's choice: `host:port` means TLS, except on
 * the loopback. A scheme (http, https, grpc or grpcs) states the choice explicitly.
 */
function grpcUrl(text: string): string | undefined {
  const [, scheme, authority = ""] = /^(?:(https?|grpcs?):\/\/)?([^/?#@\s]+)\/?$/i.exec(text) ?? [];
  if (authority === "" || !URL.canParse(`http://${authority}`)) return undefined;
  const { hostname, port } = new URL(`http://${authority}`);
  const isSecure = scheme === undefined ? !isLoopback(hostname) : /s$/i.test(scheme);
  if (scheme === undefined && !/:\d+$/.test(authority)) return undefined;
  return `${isSecure ? "grpcs" : "grpc"}://${hostname}:${port || portOf(authority) || (isSecure ? "443" : "80")}`;
}

/**
 * Returns the port at the end of an authority; undefined if it has none. The function parses the text itself, because
 * the class URL drops port 80, the default of http.
 */
function portOf(authority: string): string | undefined {
  return /:(\d+)$/.exec(authority)?.[1];
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}
