import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * The only range of IPv6 that is routed today (RFC 4291 2.4). ipaddr.js counts the unassigned ranges outside
 * this range as unicast too.
 */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Whether a text is an IP address that the public Internet routes: an address outside all special-purpose blocks (RFC
 * 6890 and its successors).
 */
export function isPublicAddress(address: string): boolean {
  // Node's check comes first, because ipaddr.js also accepts forms to which Node does not connect, such as `010.1`.
  if (isIPv4(address)) return ipaddr.IPv4.parse(address).range() === "unicast";
  if (!isIPv6(address) || !ipaddr.IPv6.isValid(address)) return false;
  const parsed = ipaddr.IPv6.parse(address);
  return parsed.range() === "unicast" && parsed.match(GLOBAL_UNICAST);
}
