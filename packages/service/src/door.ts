import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { DeputeError, ErrorReason } from "@depute/core";
import { isLoopback } from "./loopback.ts";
import { SettingsError } from "./settings.ts";

/** The settings of a server's admission check. */
export interface DoorOptions {
  /** The URL under which clients know the server. */
  readonly publicUrl: () => string;
  /** Hosts besides loopback names and the public URL's host; `*.example.org` matches every name below `example.org`. */
  readonly allowedHosts: () => readonly string[];
  /** Page origins besides those of the public URL and of loopback names with its port. */
  readonly allowedOrigins: readonly string[];
  /** Whether the server accepts calls without credentials. */
  readonly isOpen: boolean;
}

/** The head of a request. */
export interface RequestHead {
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
  readonly httpVersion: 1 | 2;
}

/** A refusal with its HTTP status. */
export interface DoorRefusal {
  readonly status: 401 | 403;
  readonly error: DeputeError;
}

/** Checks the head of a request before any handler runs; undefined admits the request. */
export type Door = (head: RequestHead) => DoorRefusal | undefined;

/** Node keeps the first value of some repeated headers, while a proxy may have checked another value. */
const CREDENTIALS = new Set(["authorization", "dpop", "x-api-key"]);
const LONGEST_CREDENTIAL = Math.max(...[...CREDENTIALS].map((name) => name.length));

/**
 * Refuses requests that pages of other sites make a browser send (MCP, Streamable HTTP; RFC 6455 section 10.2), and
 * requests that repeat a credential header.
 *
 * - A request with `Origin` or `Sec-Fetch-Site` comes from a browser: its host and its page must be allowed.
 * - DNS rebinding makes a page's own name resolve to loopback, and its GET requests carry neither header. An open server
 *   therefore checks the host of every HTTP/1.1 request. Browsers do not use HTTP/2 without TLS.
 * - All other clients may send any authority, because resolvers and client-side balancing make up names.
 */
export function createDoor(options: DoorOptions): Door {
  return ({ headers, rawHeaders, httpVersion }) => {
    const repeated = repeatedCredential(rawHeaders);
    if (repeated !== undefined)
      return refuse(401, ErrorReason.UNAUTHENTICATED, `the header ${repeated} is repeated: send it once`);
    const authority = (headers[":authority"] as string | undefined) ?? headers.host;
    const { origin, "sec-fetch-site": site } = headers;
    const isBrowser = origin !== undefined || site !== undefined;
    const mustNameHost = isBrowser || (options.isOpen && httpVersion === 1 && authority !== undefined);
    if (mustNameHost && !isAllowedHost(authority, options))
      return refuse(
        403,
        ErrorReason.CALLER_NOT_ALLOWED,
        "the request's host is not allowed: use a loopback address, or add the host to DEPUTE_ALLOWED_HOSTS",
      );
    if (isBrowser && !isAllowedPage(origin, site, authority, options))
      return refuse(
        403,
        ErrorReason.CALLER_NOT_ALLOWED,
        "the request comes from a page of another site: add the page's origin to DEPUTE_ALLOWED_ORIGINS",
      );
    return undefined;
  };
}

/**
 * Checks the syntax of DEPUTE_ALLOWED_HOSTS and DEPUTE_ALLOWED_ORIGINS.
 *
 * @throws SettingsError naming the first entry that could never match
 */
export function assertDoorSettings(hosts: readonly string[], origins: readonly string[]): void {
  for (const host of hosts) {
    const name = host.toLowerCase().replace(/^\*\./, "");
    if (/^$|\*/.test(name) || URL.parse(`http://${name}`)?.hostname !== name)
      throw new SettingsError(
        `DEPUTE_ALLOWED_HOSTS: ${host} is not a host: write e.g. depute.internal or *.example.org, without a port`,
      );
  }
  for (const origin of origins) {
    if (URL.parse(origin)?.origin !== origin || origin === "null")
      throw new SettingsError(
        `DEPUTE_ALLOWED_ORIGINS: ${origin} is not an origin: write e.g. https://app.example.org, without a path`,
      );
  }
}

/** The check of a server without settings: it refuses all pages. */
export const REFUSE_PAGES: Door = createDoor({
  publicUrl: () => "http://unnamed.invalid",
  allowedHosts: () => [],
  allowedOrigins: [],
  isOpen: false,
});

type DoorReason = typeof ErrorReason.UNAUTHENTICATED | typeof ErrorReason.CALLER_NOT_ALLOWED;

function refuse(status: 401 | 403, reason: DoorReason, message: string): DoorRefusal {
  return { status, error: new DeputeError(reason, message) };
}

/** The first credential header that occurs twice. */
function repeatedCredential(rawHeaders: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? "";
    if (raw.length > LONGEST_CREDENTIAL) continue;
    const name = raw.toLowerCase();
    if (!CREDENTIALS.has(name)) continue;
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}

/** The host of an authority, without its port and without a final dot. */
function hostOf(authority: string): string {
  return URL.parse(`http://${authority}`)?.hostname.replace(/\.$/, "") ?? "";
}

/** Browsers resolve every name below `localhost` to loopback (RFC 6761 section 6.3). */
function isLoopbackName(host: string): boolean {
  const bare = host.slice(1, -1);
  return host.endsWith(".localhost") || isLoopback(isIP(bare) === 6 ? bare : host);
}

function isAllowedHost(authority: string | undefined, { publicUrl, allowedHosts }: DoorOptions): boolean {
  const host = hostOf(authority ?? "");
  if (host === "") return false;
  if (isLoopbackName(host) || host === new URL(publicUrl()).hostname) return true;
  return allowedHosts().some((allowed) => {
    const name = allowed.toLowerCase();
    return name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name;
  });
}

/** The host of the request is allowed, so a page of the same host and port is the server's own. */
function isAllowedPage(
  origin: string | undefined,
  site: string | string[] | undefined,
  authority: string | undefined,
  { publicUrl, allowedOrigins }: DoorOptions,
): boolean {
  // Without `Origin` the page is unknown: admit the server's own pages, and addresses that the user entered.
  if (origin === undefined) return site === "same-origin" || site === "none";
  const [from, own] = [URL.parse(origin), new URL(publicUrl())];
  if (from === null) return false;
  if (allowedOrigins.includes(origin)) return true;
  if (from.host === own.host || from.host === URL.parse(`http://${authority}`)?.host) return true;
  return isLoopbackName(from.hostname) && isLoopbackName(own.hostname) && from.port === own.port;
}
