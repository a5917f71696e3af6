import { isIP } from "node:net";
import { DeputeError, ErrorReason } from "@depute/core";

const PRIVATE_PREFIX = "private:";
const PORTS: Record<string, string> = { "http:": "80", "https:": "443" };

interface Entry {
  readonly hostname: string;
  /** The only allowed port; empty for any port. */
  readonly port: string;
  readonly mayBePrivate: boolean;
}

/** The destination of an allowed address. */
export interface AllowedTarget {
  readonly url: URL;
  /** The host without brackets: a name or an IP address. */
  readonly hostname: string;
  readonly mayBePrivate: boolean;
}

/**
 * The hosts that a setting allows the platform to call. An entry is `host` or `host:port`; the host is a name or an IP
 * address (IPv6 in brackets). The name must resolve to public addresses, unless the entry begins with `private:`. An
 * entry that is an IP address may be private without this prefix.
 */
export class AllowedHosts {
  readonly #entries: readonly Entry[];

  /** @throws Error that states the valid form, for the message of a setting */
  constructor(entries: readonly string[]) {
    this.#entries = entries.map(parseEntry);
  }

  /** Whether the setting allows no calls at all. */
  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  /**
   * Checks an address, without a connection to it.
   *
   * @throws DeputeError ADDRESS_NOT_ALLOWED for an address that is neither http nor https, that contains a user name or
   * password, or whose host the setting does not allow
   */
  check(address: string): AllowedTarget {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    const defaultPort = PORTS[url?.protocol ?? ""];
    if (url === undefined || defaultPort === undefined)
      throw notAllowed("", "it is not an http or https address");
    if (url.username !== "" || url.password !== "")
      throw notAllowed(url.hostname, "it contains credentials; remove them");
    const hostname = bare(url.hostname);
    const port = url.port || defaultPort;
    const matching = this.#entries.filter(
      (entry) => entry.hostname === hostname && (entry.port === "" || entry.port === port),
    );
    if (matching.length === 0) throw notAllowed(hostname, "the configuration does not list its host");
    return {
      url,
      hostname,
      mayBePrivate: isIP(hostname) !== 0 || matching.some((each) => each.mayBePrivate),
    };
  }
}

/** Returns the error for an address that may not be called. The error repeats at most 64 characters of the host. */
export function notAllowed(host: string, why: string): DeputeError {
  return new DeputeError(ErrorReason.ADDRESS_NOT_ALLOWED, `the platform may not call this address: ${why}`, {
    metadata: { host: host.slice(0, 64) },
  });
}

function bare(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1").toLowerCase();
}

function parseEntry(entry: string): Entry {
  const mayBePrivate = entry.startsWith(PRIVATE_PREFIX);
  const text = mayBePrivate ? entry.slice(PRIVATE_PREFIX.length) : entry;
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i.exec(text);
  const authority = match?.[1];
  if (authority === undefined || !URL.canParse(`http://${authority}`)) {
    throw new Error(
      `${entry.slice(0, 64)}: write host or host:port, with the prefix private: if it may have private addresses`,
    );
  }
  return { hostname: bare(new URL(`http://${authority}`).hostname), port: match?.[2] ?? "", mayBePrivate };
}
