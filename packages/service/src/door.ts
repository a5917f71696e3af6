import type { IncomingHttpHeaders } from "node:http";
import { BlockList, isIP } from "node:net";
import { DeputeError, ErrorReason } from "@depute/core";
import { SettingsError } from "./settings.ts";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/**
 * Whether only this machine can reach an address. Every name except `localhost` counts as reachable from other
 * machines.
 */
export function isLoopback(host: string): boolean {
  if (host === "localhost") return true;
  const family = isIP(host);
  return family !== 0 && loopback.check(host, family === 6 ? "ipv6" : "ipv4");
}

/**
 * Refuses an address at which other machines could reach a server without authentication.
 *
 * @throws SettingsError when callers without credentials could reach the address from other machines
 */
export function assertBindable(host: string, auth: "open" | "required"): void {
  if (auth === "required" || isLoopback(host)) return;
  throw new SettingsError(
    `DEPUTE_HOST is ${host}, which is not a loopback address, while DEPUTE_AUTH is open: ` +
      "set DEPUTE_AUTH=required and DEPUTE_CREDENTIALS_FILE, or listen on 127.0.0.1",
  );
}

/** The settings of a Door: the check of each request's head before any handler. */
export interface DoorOptions {
  /** Returns the URL under which clients reach the server. */
  readonly publicUrl: () => string;
  /**
   * Returns the allowed hosts, in addition to loopback names and the public URL's host. `*.example.org` matches every
   * name below `example.org`.
   */
  readonly allowedHosts: () => readonly string[];
  /**
   * Allowed origins of pages. Also allowed are the public URL's origin, and origins of loopback names with the public
   * URL's port.
   */
  readonly allowedOrigins: readonly string[];
  /** Whether the server accepts calls without credentials. */
  readonly isOpen: boolean;
}

/** The parts of a request that arrive before the request's body. */
export interface RequestHead {
  readonly headers: IncomingHttpHeaders;
  /** Header names and values alternately, as received. */
  readonly rawHeaders: readonly string[];
  readonly httpVersion: 1 | 2;
}

/** A refusal with its HTTP status. */
export interface DoorRefusal {
  readonly status: 401 | 403;
  readonly error: DeputeError;
}

/** Checks the head of a request before any handler runs. Returns undefined if the request is admitted. */
export type Door = (head: RequestHead) => DoorRefusal | undefined;

/** Headers that no request may repeat. Node keeps only the first value, but a proxy may have checked another one. */
export const CREDENTIAL_HEADERS = ["authorization", "dpop", "x-api-key"] as const;
const CREDENTIALS: ReadonlySet<string> = new Set(CREDENTIAL_HEADERS);
const LONGEST_CREDENTIAL = Math.max(...[...CREDENTIALS].map((name) => name.length));

/**
 * Refuses requests that pages of other sites make a browser send (MCP, Streamable HTTP; RFC 6455 section 10.2), and
 * requests that repeat a credential header.
 * - A request with `Origin` or `Sec-Fetch-Site` comes from a browser, so its host and its page must be allowed.
 * - DNS rebinding resolves the name of a page's site to loopback. GET requests of that page then carry neither header.
 * An open server therefore checks the host of every HTTP/1.1 request. HTTP/2 requests need no such check, because
 * browsers use HTTP/2 only with TLS.
 * - All other requests may name any host, because the resolvers and load balancers of gRPC clients make up names.
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

/**
 * The Door of a server without settings. Of all pages, it admits only those that the server itself serves on loopback.
 */
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

/** Returns the name of the first credential header that occurs twice. */
function repeatedCredential(rawHeaders: readonly string[]): string | undefined {
  const seenHeaders = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? "";
    if (raw.length > LONGEST_CREDENTIAL) continue;
    const name = raw.toLowerCase();
    if (!CREDENTIALS.has(name)) continue;
    if (seenHeaders.has(name)) return name;
    seenHeaders.add(name);
  }
  return undefined;
}

/** Returns the host of an authority, without its port and without a final dot; empty if the authority is malformed. */
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

/**
 * Whether the page that caused a request may call the server. The Door has already allowed the request's host, so a
 * page from that host and port belongs to the server.
 */
function isAllowedPage(
  origin: string | undefined,
  site: string | string[] | undefined,
  authority: string | undefined,
  { publicUrl, allowedOrigins }: DoorOptions,
): boolean {
  // Without `Origin` the page is unknown. Admitted are the server's own pages (same-origin), and addresses that the
  // user entered (none).
  if (origin === undefined) return site === "same-origin" || site === "none";
  const [from, ownUrl] = [URL.parse(origin), new URL(publicUrl())];
  if (from === null) return false;
  if (allowedOrigins.includes(origin)) return true;
  if (from.host === ownUrl.host || from.host === URL.parse(`http://${authority}`)?.host) return true;
  return isLoopbackName(from.hostname) && isLoopbackName(ownUrl.hostname) && from.port === ownUrl.port;
}
