import { isObject } from "@depute/core";
import { textOfFile } from "@depute/service";
import { readEndpoint } from "../rules/endpoint.ts";
import { NOT_ALLOWED, PeerFault } from "../rules/refusal.ts";
import { grpcPeer } from "./grpc-peer.ts";
import { httpPeer } from "./http-peer.ts";
import type { Peer, PeerOutbound } from "./peer.ts";

/**
 * Connects to the NEKTE server at an agent's address.
 *
 * @throws PeerFault ADDRESS_NOT_ALLOWED, ENDPOINT_UNREACHABLE
 */
export type PeerAt = (address: string) => Promise<Peer>;

/** Headers with credentials for endpoints, by origin: scheme, host and port. */
export type PeerCredentials = ReadonlyMap<string, Readonly<Record<string, string>>>;

export function peersOver(outbound: PeerOutbound, credentials: PeerCredentials): PeerAt {
  return async (address) => {
    const endpoint = readEndpoint(address);
    if (endpoint === undefined) {
      throw new PeerFault(NOT_ALLOWED, "the agent's endpoint is not an http, https, grpc or grpcs address");
    }
    const presented = credentials.get(originOf(address)) ?? {};
    if (endpoint.protocol === "grpc") return grpcPeer(outbound.calls, endpoint, presented);
    return httpPeer(outbound, endpoint, presented);
  };
}

/**
 * Reads the file of credentials. The file's keys are origins such as `https://agents.example` and
 * `grpcs://agents.example:443`; each value is `{"bearer": secret}` or `{"apikey": secret}`. An empty file name means no
 * credentials.
 *
 * @throws Error that describes the fault without secrets
 */
export function readPeerCredentials(file: string): PeerCredentials {
  if (file === "") return new Map();
  let parsed: unknown;
  try {
    parsed = JSON.parse(textOfFile(file));
  } catch (error) {
    throw new Error(
      `${file} cannot be read as JSON: ${error instanceof SyntaxError ? "a syntax error" : error}`,
    );
  }
  if (!isObject(parsed)) throw new Error(`${file} must be an object`);
  return new Map(
    Object.entries(parsed).map(([origin, headers]) => {
      if (originOf(origin) !== origin)
        throw new Error(`${file}: ${origin} is not an origin like https://host:port`);
      return [origin, headersOf(file, origin, headers)];
    }),
  );
}

function headersOf(file: string, origin: string, headerMap: unknown): Record<string, string> {
  const { bearer, apikey, ...more } = isObject(headerMap) ? headerMap : {};
  const isText = (value: unknown): value is string => typeof value === "string" && /^[!-~]+$/.test(value);
  if (Object.keys(more).length === 0) {
    if (isText(bearer) && apikey === undefined) return { authorization: `Bearer ${bearer}` };
    if (isText(apikey) && bearer === undefined) return { "x-api-key": apikey };
  }
  throw new Error(`${file}: ${origin} must be {"bearer": secret} or {"apikey": secret}`);
}

/** Returns scheme, host and port of an address; empty for a text that is not a URL. */
export function originOf(address: string): string {
  if (!URL.canParse(address)) return "";
  const { protocol, host } = new URL(address);
  return `${protocol}//${host}`;
}
