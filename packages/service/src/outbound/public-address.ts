import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";

/** All that is routed of IPv6 today; what lies outside is not assigned, and the library does not know it. (RFC 4291 2.4) */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR("2000::/3");

/**
 * Whether an IP address in its text form is one that the public Internet routes: it is of no special-purpose block (RFC
 * 6890 and its successors). Anything else is not.
 */
export function isPublicAddress(address: string): boolean {
  // The library also reads forms that Node does not connect to, as `010.1`.
  if (isIPv4(address)) return ipaddr.IPv4.parse(address).range() === "unicast";
  if (!isIPv6(address) || !ipaddr.IPv6.isValid(address)) return false;
  const parsed = ipaddr.IPv6.parse(address);
  return parsed.range() === "unicast" && parsed.match(GLOBAL_UNICAST);
}
