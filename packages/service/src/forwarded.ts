import { isIP } from "node:net";

/** The header in which trusted proxies list the addresses through which a request passed. */
export type ForwardedHeader = "x-forwarded-for" | "forwarded";

/** Maximum number of addresses that are read from a header, beginning with the last address. */
const MAX_HOPS = 32;

/**
 * Returns the addresses that a header names, the nearest first. The text is empty for an address that is hidden,
 * unknown or malformed. (RFC 7239 4, 5.2 and 6)
 */
export function forwardedAddresses(name: ForwardedHeader, value: string): string[] {
  const hops = value.split(",").slice(-MAX_HOPS).reverse();
  return hops.map((hop) => bareAddress(name === "forwarded" ? forOf(hop) : hop.trim()));
}

/** Returns the value of the parameter `for` in one element of the header; empty if there is none. */
function forOf(element: string): string {
  for (const pair of element.split(";")) {
    const [key = "", ...rest] = pair.split("=");
    if (key.trim().toLowerCase() !== "for") continue;
    const value = rest.join("=").trim();
    return value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
  }
  return "";
}

/** The prefix of an IPv4 address that is written as an IPv6 address. (RFC 4291 2.5.5.2) */
const MAPPED = "::ffff:";

/**
 * Returns the IP address in a text, without brackets and port. `::ffff:1.2.3.4` becomes `1.2.3.4`. Empty if the text is
 * not an IP address.
 */
export function bareAddress(text: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1];
  const withPort = /^(\d[\d.]*):\d{1,5}$/.exec(text)?.[1];
  const address = bracketed ?? withPort ?? text;
  if (isIP(address) === 0) return "";
  return address.toLowerCase().startsWith(MAPPED) && address.includes(".")
    ? address.slice(MAPPED.length)
    : address;
}

/**
 * Returns the address of a request's client: the nearest address that does not belong to a trusted proxy; the farthest
 * if all belong to trusted proxies. If a trusted proxy names no address, the result is the address of that proxy.
 *
 * @param peer the address of the connection's other end
 * @param hops the addresses that proxies name, the nearest first
 */
export function clientAddress(
  peer: string,
  hops: readonly string[],
  isTrusted: (address: string) => boolean,
): string {
  let address = peer;
  for (const hop of hops) {
    if (!isTrusted(address) || hop === "") return address;
    address = hop;
  }
  return address;
}
